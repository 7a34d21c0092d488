package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// silent opens connections from a loopback address that send nothing. They are closed with the test.
func (s *system) silent(from string, count int) []net.Conn {
	s.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	all := make([]net.Conn, count)
	for i := range all {
		conn, err := dialer.Dial("tcp", s.address)
		if err != nil {
			s.t.Fatal(err)
		}
		all[i] = conn
	}
	s.t.Cleanup(func() {
		for _, conn := range all {
			_ = conn.Close()
		}
	})
	return all
}

// ended reports whether the server has closed a connection.
func ended(t *testing.T, conn net.Conn, within time.Duration) bool {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	_, err := io.ReadAll(conn)
	return !os.IsTimeout(err)
}

func (s *system) serves(name string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
	defer cancel()
	if _, err := pb.NewVolumeServiceClient(s.as(name)).ListVolumes(ctx, &pb.ListVolumesRequest{}); err != nil {
		s.t.Fatalf("%s is not served: %v", name, err)
	}
}

func TestAFloodOfSilentConnectionsKeepsNoClientOutAndTheOldestEnd(t *testing.T) {
	s := start(t)
	before := s.silent("127.0.0.7", 1)[0] // from another address, and its only connection
	flood := s.silent("127.0.0.9", 600)
	s.serves("admin")
	for _, conn := range flood[:200] {
		if !ended(t, conn, 3*time.Second) { // before the time limit of its handshake
			t.Fatal("the oldest of a flood stay")
		}
	}
	if ended(t, before, time.Millisecond) {
		t.Error("a lone connection of another address ended for the flood")
	}
	if !ended(t, flood[599], 30*time.Second) {
		t.Error("a silent connection stays for 30 s")
	}
}

func TestAFloodFromManyAddressesLeavesRoomForThoseThatAreKnown(t *testing.T) {
	s := start(t)
	s.serves("reader") // 127.0.0.1 is known now
	for i := range 600 {
		s.silent(fmt.Sprintf("127.1.%d.%d", i/250, i%250+1), 1)
	}
	s.serves("admin")
}
