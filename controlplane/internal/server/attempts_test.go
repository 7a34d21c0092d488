package server

import (
	"net"
	"net/netip"
	"testing"
)

func TestTheAddressesOfFailedAttemptsAreBounded(t *testing.T) {
	a := newAttempts()
	ip := netip.MustParseAddr("10.0.0.0")
	for range maxAttempting + 10 {
		address := &net.TCPAddr{IP: ip.AsSlice()}
		for range attemptBurst {
			a.failed(address)
		}
		if a.permitted(address) {
			t.Fatalf("%s may fail more than %d times", ip, attemptBurst)
		}
		ip = ip.Next()
	}
	if len(a.of) > maxAttempting {
		t.Errorf("%d addresses are remembered", len(a.of))
	}
	if !a.permitted(&net.TCPAddr{IP: net.ParseIP("192.0.2.1")}) {
		t.Error("an address that has not failed is refused")
	}
}
