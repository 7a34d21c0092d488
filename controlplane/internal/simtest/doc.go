// Package simtest drives the leader's decisions (package decide) and the ownership of volumes through faults, thousands of times
// in seconds. It has no clock, no network and no etcd, and the same seed gives the same run.
//
// It covers what the model check cannot: the implemented decisions, with gateways that crash, freeze, return, are disconnected
// and report late, and with deposed leaders that store their decisions late. The store gives only the guarantees of the real one:
// changes are whole, in one order, and compare what they were made from (term.go). decide.Execute makes them, as for the real
// leader. In a fifth of the runs other storage replaces the recorded one (storage.go, empty_store.go): what is served must match
// what was recorded.
package simtest
