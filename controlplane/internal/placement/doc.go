// Package placement decides which gateways export a target, which of them owns each volume, and which portals each host is shown.
// Plan is a pure function. It uses no clock, store or randomness, and the same Cluster gives the same plan regardless of the
// order of its lists.
//
// Read it in the order in which Plan works:
//
//	cluster.go     what goes in; from_model.go makes it of the control plane's nouns
//	plan.go        what comes out, and the stages
//	index.go       checks the input, sorts it, gives everything a small number
//	graph.go       a fabric's switches: distances, and what cuts them in two
//	network.go     places on the fabrics, and how far they are from each other
//	redundancy.go  which single failures would take all paths
//	path_set.go    present path sets are kept and filled up; search.go is exact where greed fails
//	rebalance.go   a bounded number of moves that gain more than the hysteresis
//	owner.go       owners of volumes within the path sets
//	access.go      portals by host, and where a login to the wrong gateway is sent
//
// controlplane/decisions/placement.md says why it is done like this.
package placement
