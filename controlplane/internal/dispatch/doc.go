// Package dispatch serves the gateways' streams: it tells each gateway what it shall be (desired.go, a pure function of
// the store's objects), as a snapshot and then as deltas, and takes up what it observes. Any replica serves any gateway: what
// it hears it stores, for the leader to act on.
package dispatch
