package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// logIn stores sessions of a host on gw-1.
func (l *live) logIn(sessions ...*model.Session) {
	l.t.Helper()
	connection, err := l.ConnectGateway(l.t.Context(), "gw-1",
		model.GatewayConnection{Ref: model.GatewayRef{Incarnation: "one"}, Replica: "here"})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = connection.Close(context.Background()) })
	if err := connection.StoreSessions(l.t.Context(), true, sessions, nil); err != nil {
		l.t.Fatal(err)
	}
}

func (l *live) shop() {
	secret := filepath.Join(l.t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("open-sesame-123\n"), 0o600); err != nil {
		l.t.Fatal(err)
	}
	l.must("volume", "create", "orders", "--pool", "nvme", "--size", "1Gi")
	l.must("host", "create", "web", "--initiator", "iqn.2026-11.org.example:web", "--chap-secret-file", secret)
	l.must("target", "create", "shop", "--lun", "0=orders", "--host", "web")
	host, err := l.Hosts.Get(l.t.Context(), "web")
	if err != nil {
		l.t.Fatal(err)
	}
	session := func(tsih uint32) *model.Session {
		return &model.Session{Gateway: "gw-1", TSIH: tsih, TargetIQN: "iqn.2026-11.dev.sluice:shop", HostUID: host.Meta.UID,
			Initiator: "iqn.2026-11.org.example:web", ISID: "00023d000001", PortalAddress: "192.0.2.1:3260", Reads: 41, Writes: 53, ReadBytes: 77, OtherCommands: 67}
	}
	l.logIn(session(1), session(2))
}

func TestSessionsAreListedFilteredCountedAndEvicted(t *testing.T) {
	l := start(t)
	l.prerequisites()
	if out := l.must("session", "list"); strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, "NAME") {
		t.Fatalf("without sessions: %q", out)
	}
	l.shop()
	for filter, lines := range map[string]int{"--host=web": 3, "--target=shop": 3, "--gateway=gw-1": 3, "--gateway=gw-2": 1,
		"--host=iqn.2026-11.org.example:web": 3, "--host=other": 1} {
		if out := l.must("session", "list", filter); strings.Count(out, "\n") != lines {
			t.Errorf("%s: %s", filter, out)
		}
	}
	const name = "gw-1.1.00023d000001"
	if out := l.must("session", "describe", name); !strings.Contains(out, "portalAddress: 192.0.2.1:3260") {
		t.Error(out)
	}
	if out := l.must("session", "evict", name); !strings.Contains(out, "session "+name+" is asked to log out") {
		t.Error(out)
	}
	if _, err := l.run("session", "evict", "gw-1.9.00023d000001"); exitCode(err) != exitNotFound {
		t.Errorf("a session that is not there: %v", err)
	}
	for _, verb := range []string{"create", "delete"} {
		if out := l.must("session", "--help"); strings.Contains(out, "\n  "+verb+" ") {
			t.Errorf("session has %s", verb)
		}
	}
}

func TestATableOfVolumesNamesTheOwner(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	for owner, want := range map[uint32]string{0: "-", 2: "gw-2", 7: "number 7"} {
		modify(l, "orders", func(v *model.Volume) {
			v.Status.Ownership = model.Ownership{State: model.Owned, Epoch: 1, Owner: model.GatewayRef{Number: owner}}
		})
		for _, verb := range []string{"get", "list"} {
			lines := strings.Split(l.must("volume", verb), "\n")
			columns := strings.Fields(strings.ReplaceAll(lines[0], "number ", "number_"))
			values := strings.Fields(strings.ReplaceAll(lines[1], "number ", "number_"))
			at := slices.Index(columns, "OWNER")
			if at < 0 || values[at] != strings.ReplaceAll(want, " ", "_") {
				t.Errorf("volume %s with owner %d: %q", verb, owner, lines)
			}
		}
	}
}

func TestStatusOfObjectsCountsWhatBelongsToThem(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	modify(l, "orders", func(v *model.Volume) {
		v.Status.Ownership = model.Ownership{State: model.Owned, Epoch: 1, Owner: model.GatewayRef{Number: 1}}
	})
	gateway, err := l.Gateways.Get(t.Context(), "gw-1")
	if err != nil {
		t.Fatal(err)
	}
	modify(l, "shop", func(target *model.Target) {
		target.Status.PathSet = []uint32{1}
		target.Status.Ports = []model.TargetPort{
			{Gateway: 1, PortalGroupTag: gateway.Status.PortalGroupTags["red"], RelativePortID: 4}}
	})
	wants := map[string][]string{
		"gateway gw-1":        {`"sessions": 2`, `"volumesOwned": 1`},
		"host web":            {`"sessions": 2`},
		"target shop":         {`"sessions": 2`, `"gateway": "gw-1"`, `"address": "192.0.2.1:3260"`, `"fabric": "red"`},
		"pool nvme":           {`"volumes": 1`},
		"gatewaypool default": {`"gateways": 2`},
	}
	for what, words := range wants {
		noun, name, _ := strings.Cut(what, " ")
		// Counts follow the store: a second for sessions, a watch for the rest.
		for over := time.Now().Add(30 * time.Second); ; {
			out := l.must(noun, "get", name, "-o", "json")
			if holdsAll(out, words) {
				break
			}
			if time.Now().After(over) {
				t.Errorf("%s lacks one of %q:\n%s", what, words, out)
				break
			}
		}
	}
}

func holdsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func TestEventsAreShownByObjectAndFollowed(t *testing.T) {
	l := start(t)
	log := store.NewEventLog(l.Store)
	record := func(name, message string) {
		event := model.Event{Severity: model.EventAlarm, Object: model.KindVolume, Name: name, Reason: "Orphaned", Message: message}
		if err := log.Record(t.Context(), event); err != nil {
			t.Fatal(err)
		}
	}
	if out := l.must("events"); strings.Count(out, "\n") != 1 {
		t.Fatalf("none yet: %q", out)
	}
	record("orders", "first")
	record("other", "second")
	record("orders", "third")
	if out := l.must("events", "--kind", "volume", "--name", "orders"); !holdsAll(out, []string{"first", "third"}) ||
		strings.Contains(out, "second") {
		t.Errorf("of one object: %s", out)
	}
	if out := l.must("events", "-n", "1", "-o", "json"); !strings.Contains(out, "third") || strings.Contains(out, "first") {
		t.Errorf("the newest: %s", out)
	}
	if _, err := l.run("events", "--kind", "vulome"); exitCode(err) != exitUsage {
		t.Errorf("a kind that is none: %v", err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	r := l.begin(ctx, "events", "--follow", "-n", "1", "-o", "json")
	r.out.until(t, "third")
	record("other", "fourth")
	r.out.until(t, "fourth")
	interrupt()
	if err := <-r.ended; err != nil {
		t.Errorf("an interrupt is no error: %v", err)
	}
	for line := range strings.Lines(r.out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON in a line: %s", line)
		}
	}
}

func TestEventsAreFollowedOnAfterTheReplicaWasRestarted(t *testing.T) {
	l := start(t)
	log := store.NewEventLog(l.Store)
	record := func(message string) {
		if err := log.Record(t.Context(), model.Event{Object: model.KindVolume, Name: message, Reason: "Served", Message: message}); err != nil {
			t.Fatal(err)
		}
	}
	record("first")
	ctx, interrupt := context.WithCancel(t.Context())
	r := l.begin(ctx, "events", "--follow", "-o", "json")
	r.out.until(t, "first")
	record("second")
	r.out.until(t, "second")
	l.stop()
	r.err.until(t, "not reachable")
	record("third")
	stop := l.serve()
	r.out.until(t, "third")
	stop()
	// Events that the store has compacted meanwhile are sent again, but not printed again.
	record("fourth")
	record("fifth")
	now, err := l.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Client.Compact(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	l.serve()
	r.out.until(t, "fifth")
	record("sixth")
	r.out.until(t, "sixth")
	interrupt()
	if err := <-r.ended; err != nil {
		t.Errorf("an interrupt is no error: %v", err)
	}
	if lines := strings.Count(r.out.String(), "\n"); lines != 6 {
		t.Errorf("%d lines for 6 events:\n%s", lines, r.out)
	}
}

func TestDeleteAndGetGoOnAfterAnObjectThatIsMissing(t *testing.T) {
	l := start(t)
	for _, name := range []string{"a", "b"} {
		l.must("fabric", "create", name)
	}
	out, err := l.run("fabric", "get", "none", "a", "b")
	if exitCode(err) != exitNotFound || !holdsAll(out, []string{"a ", "b "}) || !strings.HasPrefix(reported(err), "error: fabric none: ") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = l.run("fabric", "delete", "none", "a", "never", "b")
	if exitCode(err) != exitNotFound || !holdsAll(out, []string{"fabric a deleted", "fabric b deleted"}) {
		t.Errorf("%v\n%s", err, out)
	}
	if text := reported(err); !holdsAll(text, []string{"error: fabric none: ", "error: fabric never: "}) {
		t.Error(text)
	}
}

func TestSessionsOfAHostAreEvictedAndNoSelectionIsRefused(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	if out := l.must("session", "evict", "--host", "web"); strings.Count(out, "is asked to log out") != 2 {
		t.Error(out)
	}
	if out := l.must("session", "evict", "--host", "other"); out != "" {
		t.Error(out)
	}
	for _, arguments := range [][]string{{"session", "evict"}, {"session", "evict", "gw-1.1.00023d000001", "--host", "web"}} {
		if _, err := l.run(arguments...); exitCode(err) != exitUsage {
			t.Errorf("%v: %v", arguments, err)
		}
	}
}

func TestAServerWithoutAPortIsAtThePortOfTheControlPlane(t *testing.T) {
	for server, wanted := range map[string]string{"127.0.0.1": "127.0.0.1:7460", "cp.example": "cp.example:7460", "::1": "[::1]:7460",
		"[::1]": "[::1]:7460", "[::1]:1": "[::1]:1", "127.0.0.1:1": "127.0.0.1:1"} {
		if got := withPort(server); got != wanted {
			t.Errorf("%s: %s", server, got)
		}
	}
}

func TestStatusShowsFindingsAndEndsWith5OnlyWhereAsked(t *testing.T) {
	l := start(t)
	l.prerequisites()
	if _, err := l.run("status", "--check"); err != nil {
		t.Fatalf("without findings: %v", err)
	}
	l.shop()
	modify(l, "orders", func(v *model.Volume) {
		v.Status.Ownership, v.Status.CapacityBytes = model.Ownership{State: model.Orphaned, Epoch: 1}, v.Spec.SizeBytes
	})
	out := l.must("status")
	if !holdsAll(out, []string{"version 9.8.7", "Gateways", "2: 2 New", "1: 1 Orphaned", "so volume orders: has no owner", "remedy:"}) {
		t.Errorf("%s", out)
	}
	if _, err := l.run("status", "--check"); exitCode(err) != exitNotNow {
		t.Errorf("--check with findings: %v", err)
	}
	var shown overview
	if err := json.Unmarshal([]byte(l.must("status", "-o", "json")), &shown); err != nil || shown.Volumes["Orphaned"] != 1 ||
		shown.Sessions != 2 || len(shown.Findings) == 0 || shown.Findings[0]["remedy"] == "" || shown.ControlPlane["version"] != "9.8.7" {
		t.Errorf("%v %+v", err, shown)
	}
}

func TestFlagsThatNameObjectsAreCompletedByTheServer(t *testing.T) {
	l := start(t)
	l.prerequisites()
	for wanted, arguments := range map[string][]string{
		"nvme":    {"volume", "create", "x", "--pool", ""},
		"gw-2":    {"volume", "move", "x", "--to", "gw-"},
		"red":     {"gatewaypool", "create", "x", "--fabric", ""},
		"default": {"gateway", "create", "x", "--pool", ""},
		"gw-1":    {"session", "list", "--gateway", ""},
		"volume":  {"events", "--kind", ""},
	} {
		if out := l.must(append([]string{"__complete"}, arguments...)...); !strings.Contains(out, wanted+"\n") {
			t.Errorf("%v: %q", arguments, out)
		}
	}
}
