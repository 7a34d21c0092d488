// Package store keeps the control plane's objects in etcd. It is the only place that knows the
// layout of the keys: one file per noun says what is unique, what refers to what, and which
// numbers are given once.
//
// Every change is one transaction that compares what it was made from: two writers never both win,
// and an object never refers to one that is gone. Keys, below the cluster's prefix:
//
//	schema                              version of the layout (see migrate.go)
//	objects/<kind>/<name>               the object, an envelope in JSON
//	alive/<kind>/<name>                 it may be referred to; gone once deletion was asked for
//	references/<kind>/<name>/<kind>/<name>   the second object refers to the first
//	claims/<what>/<value>               a unique value and the object that has it
//	numbers/<what>                      last number given; numbers are never reused (R13)
//	access-report                       hosts whose access an upgrade closed are still to be reported (see closed_access.go)
//	restored                            when the restore of a backup was noted last (see restored.go)
//	epochs/<volume uid>                 fencing number of the present owner (R1)
//	reservations/<volume uid>           persistent reservations and their generation (R8)
//	events/<time>-<random>              events, on a lease
//	observed/connection/<gateway name>  it has a stream, on a lease (see observed.go)
//	observed/volume/<uid>/<gateway number>, observed/pool/<uid>/<gateway number>, observed/load/<gateway number>
//	observed/peer/<number>/<reporter's number>   how a gateway finds another one
//	incarnations/<gateway name>         the present incarnation and those that it replaced
//	writable/<gateway number>           the store took a write of its connection, on its lease
//	jobs/<id>                           management of images by gateways
//	forwarding-keys                     keys that all gateways share, for gateways without pairwise keys, encrypted
//	forwarding-roots                    what the key of each pair of gateways is derived from, encrypted (see forwarding.go)
//	leader/<lease>                      who leads, on a lease (see leader.go)
package store
