package attempts

import (
	"net"
	"net/netip"
	"testing"
)

func TestTheAddressesOfFailedAttemptsAreBounded(t *testing.T) {
	a := New()
	ip := netip.MustParseAddr("10.0.0.0")
	for range maxNetworks + 10 {
		address := &net.TCPAddr{IP: ip.AsSlice()}
		for range burst {
			a.Failed(address)
		}
		if a.Permitted(address) {
			t.Fatalf("%s may fail more than %d times", ip, burst)
		}
		ip = ip.Next()
	}
	if len(a.of) > maxNetworks {
		t.Errorf("%d addresses are remembered", len(a.of))
	}
	if !a.Permitted(&net.TCPAddr{IP: net.ParseIP("192.0.2.1")}) {
		t.Error("an address that has not failed is refused")
	}
}
