// Package dispatch serves the streams of gateways: it sends each gateway its desired state, which package desired computes, as a snapshot
// and then as changes, and stores the gateway's observations for the leader. Any replica serves any gateway.
package dispatch
