// Package store stores the control plane's objects in etcd. It is the only package that knows the layout of the keys. One file
// per kind states which values are unique, which objects refer to each other, and which numbers are assigned once.
//
// Every change is one transaction that compares the versions that it was made from: two writers never both succeed, and an object
// never refers to a removed one. Keys, below the cluster's prefix:
//
//	schema                              version of the layout (see migrate.go)
//	objects/<kind>/<name>               the object, an envelope in JSON
//	alive/<kind>/<name>                 other objects may refer to it; removed once its deletion was requested
//	references/<kind>/<name>/<kind>/<name>   the second object refers to the first
//	claims/<what>/<value>               a unique value and the object that has it
//	numbers/<what>                      last number assigned; numbers are never reused (R13)
//	access-report                       hosts whose access an upgrade closed are still to be reported (see closed_access.go)
//	restored                            the last recorded restore of a backup (see restored.go)
//	epochs/<volume uid>                 fencing number of the present owner (R1)
//	reservations/<volume uid>           persistent reservations and their generation (R8)
//	events/<time>-<random>              events, on a lease
//	observed/connection/<gateway name>  the gateway has a stream, on a lease (see observed.go)
//	observed/volume/<uid>/<gateway number>, observed/pool/<uid>/<gateway number>, observed/load/<gateway number>
//	observed/peer/<number>/<reporter's number>   whether a gateway reaches another one
//	incarnations/<gateway name>         the present incarnation and those that it replaced
//	writable/<gateway number>           its connection has written to the store, on its lease
//	jobs/<id>                           management of images by gateways
//	forwarding-keys                     keys that all gateways share, for gateways without pairwise keys, encrypted
//	forwarding-roots                    roots of the keys of all pairs of gateways, encrypted (see forwarding.go)
//	leader/<lease>                      the leader, on a lease (see leader.go)
package store
