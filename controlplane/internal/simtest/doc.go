// Package simtest drives the orchestrator's decisions and the ownership of volumes through faults, thousands of times in
// seconds: no clock, no network, no etcd, and the same seed gives the same run. It holds what the model check cannot:
// the decisions as they are written, over gateways that crash, freeze, come back, are cut off and report late, with leaders
// that were deposed and store late what they had decided. The store has the real one's promises only: changes are whole, in
// one order, and compare what they were made from.
package simtest
