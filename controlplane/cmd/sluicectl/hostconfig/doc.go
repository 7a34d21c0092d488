// Package hostconfig prints how a host connects to its targets: a script for each operating system, and the commands that check its
// result. It computes text only: the caller reads the objects from the control plane.
//
// The scripts set what the guarantees of the gateways need: a host abandons a silent path after 5 s at the earliest (DESIGN R6), and
// multipath uses the paths of the owner first.
package hostconfig
