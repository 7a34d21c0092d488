// Package desired computes the desired state of a gateway from the objects in memory: a pure function, which does not know the store.
//
//	desired.go  Build: settings, listeners, targets, peers, hosts; access.go: which host may use which portals
//	volume.go   the message about a volume; RoleOf: the role of a gateway for it
//	pool.go     the identity of a pool; keys.go: keys between gateways
//	state.go    digests, and the updates that lead from one state to another; amend.go: a few changed volumes
//
// Package dispatch sends the result to gateways; simtest gives its gateways their roles by RoleOf.
package desired
