// Package objects has a set of the store's objects in memory, with indexes by uid, IQN and number. It also computes results that
// depend only on the set: which portals of a target each host is shown, which gateways a gateway knows as peers, and which pools
// it serves.
//
// The package does not read the store. Package view fills a set from the store's watches, and the leader fills its own.
package objects
