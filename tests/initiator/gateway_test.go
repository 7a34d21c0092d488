package initiator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

const (
	iqn           = "iqn.2026-11.dev.sluice:test"
	initiatorName = "iqn.2026-11.dev.sluice:tester"
	blockSize     = 512
)

func program(t *testing.T) string {
	t.Helper()
	path := os.Getenv("SLUICE_GATEWAY")
	if path == "" {
		path = "../../build/bin/sluice-gateway"
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("no gateway is built (make build-gateway)")
	}
	return path
}

// freeAddress is below the kernel's ephemeral ports: a client could take one of those while a gateway is stopped.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000)))
		if err == nil {
			defer func() { _ = listener.Close() }()
			return listener.Addr().String()
		}
	}
	t.Fatal("no free port")
	return ""
}

// gateway runs a gateway with two portals and one memory LUN until the test ends.
func gateway(t *testing.T, change ...func(*netns.Standalone)) (*netns.Process, []string) {
	t.Helper()
	portals := []string{freeAddress(t), freeAddress(t)}
	setup := netns.Standalone{Program: program(t), Name: "gateway", Directory: t.TempDir(), Listen: portals, Target: iqn,
		LUNs: []string{"backend: memory, size: 1MiB"}}
	for _, f := range change {
		f(&setup)
	}
	process, err := setup.Process()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Kill() })
	if err := netns.UntilListens(soon(t), process, portals[0]); err != nil {
		t.Fatal(err)
	}
	return process, portals
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func logIn(t *testing.T, options initiator.Options) *initiator.Session {
	t.Helper()
	options.Target, options.Initiator = iqn, initiatorName
	session, err := initiator.Login(soon(t), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

func good(t *testing.T, session *initiator.Session, command initiator.Command) []byte {
	t.Helper()
	for range 8 {
		response, err := session.Do(soon(t), command)
		if err != nil {
			t.Fatal(err)
		}
		if response.Sense.Key == initiator.SenseUnitAttention {
			continue
		}
		if response.Status != initiator.StatusGood {
			t.Fatal(response)
		}
		return response.Data
	}
	t.Fatal("unit attentions without an end")
	return nil
}

func TestImmediateAndSolicitedWritesAreReadBack(t *testing.T) {
	_, portals := gateway(t)
	session := logIn(t, initiator.Options{Portal: portals[0]})
	for _, size := range []int{blockSize, 65536, 300 * 1024} { // the last two need R2Ts beyond FirstBurstLength
		data := bytes.Repeat([]byte{byte(size >> 9), 1, 2, 3}, size/4)
		good(t, session, initiator.Write(0, 7, data, blockSize))
		if got := good(t, session, initiator.Read(0, 7, size/blockSize, blockSize)); !bytes.Equal(got, data) {
			t.Errorf("%d bytes read back differ", size)
		}
	}
	good(t, session, initiator.TestUnitReady(0))
	session.LogOut()
	if lost := session.Lost(); lost.Reason != initiator.LostLogout {
		t.Errorf("after a logout: %v", lost)
	}
}

func TestManyCommandsAreUnderWayAtOnce(t *testing.T) {
	_, portals := gateway(t)
	session := logIn(t, initiator.Options{Portal: portals[0]})
	var all sync.WaitGroup
	for i := range 500 { // more than the command window
		all.Go(func() {
			data := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, blockSize/2)
			good(t, session, initiator.Write(0, uint64(i), data, blockSize))
			if got := good(t, session, initiator.Read(0, uint64(i), 1, blockSize)); !bytes.Equal(got, data) {
				t.Errorf("block %d differs", i)
			}
		})
	}
	all.Wait()
}

func TestCompareAndWriteTellsAMiscompare(t *testing.T) {
	_, portals := gateway(t)
	session := logIn(t, initiator.Options{Portal: portals[0]})
	zero, one := make([]byte, blockSize), bytes.Repeat([]byte{1}, blockSize)
	good(t, session, initiator.CompareAndWrite(0, 3, zero, one))
	response, err := session.Do(soon(t), initiator.CompareAndWrite(0, 3, zero, one))
	if err != nil || response.Sense.Key != initiator.SenseMiscompare {
		t.Errorf("a second one: %v, %v", response, err)
	}
}

func TestAReservationShutsOthersOut(t *testing.T) {
	_, portals := gateway(t)
	holder := logIn(t, initiator.Options{Portal: portals[0], ISID: [6]byte{0x80, 1}})
	other := logIn(t, initiator.Options{Portal: portals[0], ISID: [6]byte{0x80, 2}})
	good(t, other, initiator.TestUnitReady(0))
	good(t, holder, initiator.PersistentReserve(0, initiator.PRRegister, 0, 0, 17))
	good(t, holder, initiator.PersistentReserve(0, initiator.PRReserve, 1, 17, 0)) // write exclusive
	if keys := good(t, holder, initiator.ReservationKeys(0)); len(keys) != 16 || keys[15] != 17 {
		t.Errorf("keys % x", keys)
	}
	response, err := other.Do(soon(t), initiator.Write(0, 0, make([]byte, blockSize), blockSize))
	if err != nil || response.Status != initiator.StatusReservationConflict {
		t.Errorf("a write of another host: %v, %v", response, err)
	}
}

func TestChapBothWays(t *testing.T) {
	_, portals := gateway(t, func(s *netns.Standalone) {
		for name, secret := range map[string]string{"host": "open sesame 42", "target": "sesame opened 43"} {
			if err := os.WriteFile(filepath.Join(s.Directory, name), []byte(secret), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s.Hosts = `[{initiators: ["*"], chap: {user: alice, secret-file: ` + s.Directory + `/host},
  mutual: {user: store, secret-file: ` + s.Directory + `/target}}]`
	})
	right := initiator.CHAP{User: "alice", Secret: "open sesame 42", MutualSecret: "sesame opened 43"}
	good(t, logIn(t, initiator.Options{Portal: portals[0], CHAP: &right}), initiator.TestUnitReady(0))
	wrong := right
	wrong.Secret = "open sesame 43"
	options := initiator.Options{Portal: portals[0], Target: iqn, Initiator: initiatorName, CHAP: &wrong}
	var refused *initiator.LoginError
	if _, err := initiator.Login(soon(t), options); !errors.As(err, &refused) || refused.Status != 0x0201 {
		t.Errorf("a wrong secret: %v", err)
	}
	wrong = right
	wrong.MutualSecret = "sesame opened 44"
	if _, err := initiator.Login(soon(t), options); err == nil {
		t.Error("a target that proves nothing was believed")
	}
}

func TestASilentTargetIsPingedThenGivenUpNoSooner(t *testing.T) {
	process, portals := gateway(t)
	const limit = 1500 * time.Millisecond
	session := logIn(t, initiator.Options{Portal: portals[0], PingAfter: 200 * time.Millisecond, SilenceLimit: limit})
	select { // pings alone keep it alive for longer than the limit
	case <-session.Over():
		t.Fatal(session.Lost())
	case <-time.After(limit + limit/2):
	}
	if err := process.Freeze(soon(t)); err != nil {
		t.Fatal(err)
	}
	_, err := session.Do(soon(t), initiator.Write(0, 0, make([]byte, blockSize), blockSize))
	var lost *initiator.LostError
	if !errors.As(err, &lost) || lost.Reason != initiator.LostSilent || !lost.Sent || lost.At.Sub(lost.Heard) < limit {
		t.Errorf("a write to a stopped gateway: %v", err)
	}
}

func TestAKilledTargetIsNoticedAtOnce(t *testing.T) {
	process, portals := gateway(t)
	session := logIn(t, initiator.Options{Portal: portals[0]})
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-session.Over()
	if reason := session.Lost().Reason; reason != initiator.LostReset && reason != initiator.LostClosed {
		t.Errorf("lost by %v", reason)
	}
}

func open(t *testing.T, portals []string, change ...func(*initiator.Config)) *initiator.Multipath {
	t.Helper()
	config := initiator.Config{Portals: portals, Target: iqn, Initiator: initiatorName, LUNs: []uint16{0}, Note: t.Logf}
	for _, f := range change {
		f(&config)
	}
	m := initiator.Open(config)
	t.Cleanup(m.Close)
	if err := m.WaitPaths(soon(t), len(portals)); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAWriteMovesToAnotherPathAfterAReset(t *testing.T) {
	if _, err := netns.FaultyGateway(program(t)); err != nil {
		t.Skip(err) // tests/robustness/run builds it
	}
	process, portals := gateway(t, func(s *netns.Standalone) {
		s.Faults = "=delay-every=1;delay-ms=400"
	})
	const wait = 700 * time.Millisecond
	m := open(t, portals, func(c *initiator.Config) { c.ResetWait = wait })
	results := make(chan initiator.Result, 8)
	for i := range cap(results) {
		go func() {
			results <- m.Run(soon(t), initiator.Write(0, uint64(i), bytes.Repeat([]byte{9}, blockSize), blockSize))
		}()
	}
	for m.Paths[0].Session().UnderWay() == 0 {
		if !process.Running() {
			t.Fatal(process.LogTail(20))
		}
	}
	m.Paths[0].Session().Reset()
	moved := 0
	for range cap(results) {
		result := <-results
		if result.Outcome != initiator.OK {
			t.Fatalf("%v: %v", result.Outcome, result.Err)
		}
		if len(result.Attempts) < 2 {
			continue
		}
		moved++
		first, second := result.Attempts[0], result.Attempts[1]
		if first.Effect != initiator.EffectMaybe || first.Bounded || second.Effect != initiator.EffectDone {
			t.Errorf("attempts %+v", result.Attempts)
		}
		if second.Sent.Sub(first.Ended) < wait/2 {
			t.Errorf("moved after %v", second.Sent.Sub(first.Ended))
		}
	}
	if moved == 0 {
		t.Error("nothing was under way on the path that was reset")
	}
}

// noSessions returns once every path has detected that its gateway is gone.
func noSessions(t *testing.T, m *initiator.Multipath) {
	t.Helper()
	for _, path := range m.Paths {
		if err := netns.Until(soon(t), func() error {
			if path.Session() != nil {
				return errors.New("a path is up")
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPathsComeBackAfterARestart(t *testing.T) {
	process, portals := gateway(t)
	m := open(t, portals)
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	noSessions(t, m)
	done := make(chan initiator.Result)
	go func() { done <- m.Run(soon(t), initiator.Read(0, 0, 1, blockSize)) }()
	// A killed process's io_uring closes the listening sockets shortly after its end, and a new process cannot bind until then: a
	// service manager tries again.
	if err := netns.Until(soon(t), func() error {
		if !process.Running() {
			if err := process.Start(); err != nil {
				t.Fatal(err)
			}
		}
		brief, cancel := context.WithTimeout(soon(t), 200*time.Millisecond)
		defer cancel()
		return m.WaitPaths(brief, 2)
	}); err != nil {
		t.Error(err, process.LogTail(20))
	}
	if result := <-done; result.Outcome != initiator.OK {
		t.Errorf("a read over the restart: %v", result.Err)
	}
}

func TestAnOperationWithoutPathsFailsAndOneWithoutAnswerIsUnknown(t *testing.T) {
	process, portals := gateway(t)
	m := open(t, portals)
	brief, cancel := context.WithTimeout(soon(t), 500*time.Millisecond)
	defer cancel()
	if err := process.Freeze(soon(t)); err != nil {
		t.Fatal(err)
	}
	if result := m.Run(brief, initiator.Write(0, 0, make([]byte, blockSize), blockSize)); result.Outcome != initiator.Unknown {
		t.Errorf("a write without an answer: %v", result.Outcome)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	noSessions(t, m)
	brief, cancel = context.WithTimeout(soon(t), 100*time.Millisecond)
	defer cancel()
	if result := m.Run(brief, initiator.Write(0, 0, make([]byte, blockSize), blockSize)); result.Outcome != initiator.Failed {
		t.Errorf("a write without a path: %v", result.Outcome)
	}
}
