// Package simtest drives the leader's decisions (package decide) and the ownership of volumes through faults, thousands of times in
// seconds: no clock, no network, no etcd, and the same seed gives the same run. It holds what the model check cannot:
// the decisions as they are written, over gateways that crash, freeze, come back, are cut off and report late, with leaders
// that were deposed and store late what they had decided. The store has the real one's promises only: changes are whole, in
// one order, and compare what they were made from (term.go). decide.Execute makes them, as it does for the real leader. In a fifth of the runs something else takes the place of what was recorded
// (storage.go, empty_store.go): what is served must match what was recorded.
package simtest
