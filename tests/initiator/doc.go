// Package initiator is an iSCSI initiator in user space (RFC 7143) that behaves like a multipath host, for tests that need the
// result of every single attempt. Session is one session with one connection; Multipath combines several and changes paths.
package initiator
