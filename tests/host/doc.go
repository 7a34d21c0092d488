// Package host is an iSCSI initiator in user space (RFC 7143) that behaves as a multipath host does, for tests that
// need to know of every single attempt what became of it. Session is one session of one connection; Multipath joins
// several and changes path.
package host
