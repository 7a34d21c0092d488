// Package view keeps a copy of the store's objects in memory, as fresh as the watches of etcd make it. What is decided
// from it may be old by the time it is stored: every change is still a compare-and-swap in the store.
package view
