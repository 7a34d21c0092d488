package connection

import "testing"

func TestAPlainConnectionIsForLoopbackOnly(t *testing.T) {
	for server, possible := range map[string]bool{"192.0.2.1:7460": false, "127.0.0.1:7460": true, "[::1]:7460": true, "localhost:7460": true} {
		connection, err := Open(Options{Server: server, Insecure: true})
		if (err == nil) != possible {
			t.Errorf("%s: %v", server, err)
		}
		if connection != nil {
			_ = connection.Close()
		}
	}
}

func TestAConnectionNeedsACertificateOrInsecure(t *testing.T) {
	if _, err := Open(Options{Server: "127.0.0.1:7460"}); err == nil {
		t.Error("without TLS and without --insecure it was made")
	}
}
