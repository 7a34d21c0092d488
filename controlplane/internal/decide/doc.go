// Package decide has the leader's decisions, as functions of the leader's knowledge (LeaderView) and the time. It does not know
// the store. Execute makes the change of a decision through the interface Store: package leader passes the term of a leader, and
// simtest a memory with injected faults.
//
// Read it in this order:
//
//	view.go       what the leader knows; observe.go adds the reports of gateways
//	touch.go      which objects a change affects
//	decision.go   Decision; key.go decides on an object by its kind
//	action.go     every type of action that a decision can have; execute.go makes their changes
//	health.go     which gateways are dead (R1)
//	ownership.go  the owner of a volume (R1, R2, R7), one step at a time; candidate.go: which gateways could own it,
//	              fencing.go: how a former owner is fenced, takeovers.go: volumes in use come first
//	planning.go   path sets, as placement plans them; applied.go: what gateways have applied
//	sessions.go   which sessions have to log out: those beyond a host's limit, and those at portals that the host is no longer shown
//	volumes.go    images, growth, deletion; snapshots.go, pools.go; jobs.go assigns jobs to gateways
//	limits.go     every bound
package decide
