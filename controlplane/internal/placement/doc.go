// Package placement decides which gateways export a target, which of them owns each volume, and which portals each host is shown.
// Plan is a pure function. It uses no clock, store or randomness, and the same Cluster gives the same plan regardless of the
// order of its lists.
//
// Read it in the order in which Plan works:
//
//	cluster.go     the input; from_model.go converts it from the model
//	plan.go        the result, and the stages
//	index.go       checks, sorts and numbers the input
//	graph.go       a fabric's switches: distances, cut switches and bridges
//	network.go     places on the fabrics, and their distances
//	redundancy.go  the single failures that would take all paths
//	path_set.go    keeps present path sets and completes them; search.go is exact where this greedy choice is not
//	rebalance.go   a bounded number of moves whose gain exceeds the hysteresis
//	owner.go       owners of volumes within the path sets
//	access.go      portals by host, and the redirection of a login at another gateway
//
// controlplane/decisions/placement.md gives the reasons.
package placement
