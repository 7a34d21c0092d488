// Package orchestrator is the leader's loop: it carries out what the objects ask for. One replica leads; it hears of every
// object and of everything that gateways observe, decides on one object at a time, and stores what follows.
//
// Read it in this order:
//
//	orchestrator.go  election, workers; watches.go: nothing is decided before every watch has told everything
//	view.go          what the leader knows; observe.go takes up what gateways say
//	touch.go         what a change makes worth a look; queue.go hands it to the workers, each key to one at a time (R15)
//	decision.go      what a decision is; key.go decides on an object by its kind
//	health.go        who is dead (R1)
//	ownership.go     who owns a volume (R1, R2, R7), one step at a time; candidate.go who could,
//	                 fencing.go how one is shut out
//	planning.go      path sets, as placement wants them; applied.go what gateways have made of them
//	sessions.go      whose sessions are asked to leave: those beyond a host's limit, those at portals that it is shown no more
//	volumes.go       images, growth, deletion; snapshots.go, pools.go; jobs.go gives work to gateways
//	reconcile.go     stores what was decided, the only file that does
//	limits.go        every bound
//
// All decisions are functions of the view and the time, which simtest drives through faults. decisions/2026-11-21-orchestrator.md
// says why it is done like this.
package orchestrator
