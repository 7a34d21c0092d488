// Package leader elects one replica, which carries out the decisions of package decide. The elected leader watches every object and
// every report of gateways, decides on one object at a time, and stores the result.
//
// Read it in this order:
//
//	leader.go     election, workers, planner
//	watches.go    the watches; the leader decides nothing before every watch has delivered everything
//	queue.go      the keys that workers have to decide on, each at one worker at a time (R15)
//	reconcile.go  decides on one key and stores the result; the only file that writes to the store
//	metrics.go    metrics, and how long a failover takes
//
// controlplane/decisions/leader-and-ownership.md gives the reasons for this structure.
package leader
