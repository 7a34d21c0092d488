package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	serving "sluice.dev/sluice/controlplane/internal/api"
	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/server"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/view"
)

// shared serves all tests; each has a cluster of its own in it.
var shared *etcd.Embedded

func TestMain(m *testing.M) {
	directory, err := os.MkdirTemp("", "sluicectl")
	if err == nil {
		shared, err = etcd.StartEmbedded(context.Background(), directory, zap.NewNop())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	shared.Close()
	_ = os.RemoveAll(directory)
	os.Exit(code)
}

// live is a control plane with a store that tests change as the leader and the gateways would.
type live struct {
	*store.Store
	t       *testing.T
	address string
}

func start(t *testing.T) *live {
	t.Helper()
	ring, err := store.ParseKeyring(store.GenerateKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := store.Open(t.Context(), shared.Client, store.Options{Cluster: "t-" + model.NewUID(), Keyring: ring})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	seen := view.New(kept, log)
	made, err := server.New(server.Options{Store: kept, View: seen, Insecure: true, Log: log,
		Registry: prometheus.NewRegistry(), Self: serving.ControlPlane{Version: "9.8.7", Replica: "here", EmbeddedStore: true}})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := server.Listen("127.0.0.1:0", true)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = seen.Run(ctx) })
	running.Go(func() { _ = made.Serve(listener) })
	t.Cleanup(func() { made.Stop(); stop(); running.Wait() })
	<-seen.Ready()
	return &live{Store: kept, t: t, address: listener.Addr().String()}
}

// written is what a command prints, which may be read while it does.
type written struct {
	mutex sync.Mutex
	text  bytes.Buffer
	heard chan struct{}
}

func (w *written) Write(p []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	n, err := w.text.Write(p)
	select {
	case w.heard <- struct{}{}:
	default:
	}
	return n, err
}

func (w *written) String() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.text.String()
}

// until waits for a text to be printed.
func (w *written) until(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(w.String(), text) {
		select {
		case <-w.heard:
		case <-t.Context().Done():
			t.Fatalf("%q is not in %q", text, w.String())
		}
	}
}

// running is a command that has been begun.
type running struct {
	out, err *written
	ended    chan error
}

func (l *live) begin(ctx context.Context, arguments ...string) *running {
	r := &running{&written{heard: make(chan struct{}, 1)}, &written{heard: make(chan struct{}, 1)}, make(chan error, 1)}
	root := newRoot("sluicectl")
	root.SetOut(r.out)
	root.SetErr(r.err)
	root.SetArgs(append(arguments[:1:1], append([]string{"--server", l.address, "--insecure"}, arguments[1:]...)...))
	go func() { r.ended <- root.ExecuteContext(ctx) }()
	return r
}

// run returns what a command prints on standard output, and its error.
func (l *live) run(arguments ...string) (string, error) {
	r := l.begin(l.t.Context(), arguments...)
	err := <-r.ended
	return r.out.String(), err
}

func (l *live) must(arguments ...string) string {
	l.t.Helper()
	out, err := l.run(arguments...)
	if err != nil {
		l.t.Fatalf("%v: %v\n%s", arguments, err, out)
	}
	return out
}

// house makes what volumes and targets refer to, and two gateways.
func (l *live) house() {
	l.must("fabric", "create", "red")
	l.must("gatewaypool", "create", "default", "--fabric", "red")
	l.must("pool", "create", "nvme", "--node", "node-1", "--directory", "/srv/sluice")
	for _, n := range []string{"1", "2"} {
		l.must("gateway", "create", "gw-"+n, "--node", "node-"+n, "--portal", "fabric=red,listen=192.0.2."+n+":3260",
			"--forwarding-address", "192.0.2."+n+":3261")
	}
}

// modify changes an object as the leader would.
func modify[T model.Object](l *live, c *store.Collection[T], name string, change func(T)) {
	l.t.Helper()
	_, err := c.Modify(l.t.Context(), name, func(o T) (bool, error) { change(o); return true, nil })
	if err != nil {
		l.t.Fatal(err)
	}
}

func TestCreateWaitsUntilTheVolumeHasItsCapacity(t *testing.T) {
	l := start(t)
	l.house()
	r := l.begin(t.Context(), "volume", "create", "orders", "--pool", "nvme", "--size", "1Gi", "--wait", "-o", "json")
	r.err.until(t, "no capacity is reported yet")
	if r.out.String() != "" {
		t.Fatalf("printed before it was there: %s", r.out)
	}
	modify(l, l.Volumes, "orders", func(v *model.Volume) { v.Status.CapacityBytes = 1 << 30 })
	if err := <-r.ended; err != nil || !strings.Contains(r.out.String(), `"capacityBytes": "1073741824"`) {
		t.Fatalf("%v\n%s", err, r.out)
	}
}

func TestATimeOutIsExitCode8AndNamesWhatIsMissing(t *testing.T) {
	l := start(t)
	l.house()
	_, err := l.run("volume", "create", "orders", "--pool", "nvme", "--size", "1Gi", "--wait", "--timeout", "500ms")
	if exitCode(err) != exitDeadlineIsOver || !strings.Contains(err.Error(), "volume orders: no capacity is reported yet") {
		t.Fatalf("exit code %d: %v", exitCode(err), err)
	}
}

func TestDeleteWaitsUntilAllAreGone(t *testing.T) {
	l := start(t)
	l.house()
	for _, name := range []string{"a", "b"} {
		l.must("volume", "create", name, "--pool", "nvme", "--size", "1Gi")
	}
	r := l.begin(t.Context(), "volume", "delete", "a", "b", "--wait")
	r.err.until(t, "0 of 2")
	for _, name := range []string{"a", "b"} {
		volume, err := l.Volumes.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Volumes.Remove(t.Context(), volume); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-r.ended; err != nil || !strings.Contains(r.out.String(), "volume b is gone") {
		t.Fatalf("%v\n%s", err, r.out)
	}
}

func TestWaitingForWhatIsDeletedMeanwhileEndsAsNotFound(t *testing.T) {
	l := start(t)
	l.house()
	r := l.begin(t.Context(), "volume", "create", "orders", "--pool", "nvme", "--size", "1Gi", "--wait")
	r.err.until(t, "no capacity")
	volume, err := l.Volumes.Delete(t.Context(), "orders", store.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Volumes.Remove(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
	if err := <-r.ended; exitCode(err) != exitNotFound {
		t.Fatalf("exit code %d: %v", exitCode(err), err)
	}
}

func TestDrainWaitsUntilDrainedAndCountsVolumes(t *testing.T) {
	l := start(t)
	l.house()
	for i := range 4 {
		name := fmt.Sprintf("v-%d", i)
		l.must("volume", "create", name, "--pool", "nvme", "--size", "1Gi")
		modify(l, l.Volumes, name, func(v *model.Volume) {
			v.Status.Ownership = model.Ownership{State: model.Owned, Epoch: 1, Owner: model.GatewayRef{Number: 1}}
		})
	}
	r := l.begin(t.Context(), "gateway", "drain", "gw-1", "--wait")
	r.err.until(t, "0 of 4: gateway gw-1: its health is New")
	modify(l, l.Volumes, "v-0", func(v *model.Volume) { v.Status.Ownership.Owner.Number = 2 })
	r.err.until(t, "1 of 4")
	modify(l, l.Gateways, "gw-1", func(g *model.Gateway) { g.Status.Health = model.GatewayDrained })
	if err := <-r.ended; err != nil || !strings.Contains(r.out.String(), "gateway gw-1 drain is complete") {
		t.Fatalf("%v\n%s", err, r.out)
	}
}

func TestAnInterruptedWaitSaysWhatGoesOn(t *testing.T) {
	l := start(t)
	l.house()
	ctx, interrupt := context.WithCancel(t.Context())
	r := l.begin(ctx, "volume", "create", "orders", "--pool", "nvme", "--size", "1Gi", "--wait")
	r.err.until(t, "no capacity")
	interrupt()
	if err := <-r.ended; exitCode(err) != exitOther || !strings.HasPrefix(err.Error(), "interrupted; ") {
		t.Fatalf("exit code %d: %v", exitCode(err), err)
	}
}

// logIn stores sessions of a host on gw-1.
func (l *live) logIn(sessions ...*model.Session) {
	l.t.Helper()
	connection, err := l.ConnectGateway(l.t.Context(), "gw-1",
		store.GatewayConnection{Ref: model.GatewayRef{Incarnation: "one"}, Replica: "here"})
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
			Initiator: "iqn.2026-11.org.example:web", ISID: "00023d000001", PortalAddress: "192.0.2.1:3260", ReadBytes: 77}
	}
	l.logIn(session(1), session(2))
}

func TestSessionsAreListedFilteredCountedAndEvicted(t *testing.T) {
	l := start(t)
	l.house()
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

func TestStatusOfObjectsCountsWhatBelongsToThem(t *testing.T) {
	l := start(t)
	l.house()
	l.shop()
	modify(l, l.Volumes, "orders", func(v *model.Volume) {
		v.Status.Ownership = model.Ownership{State: model.Owned, Epoch: 1, Owner: model.GatewayRef{Number: 1}}
	})
	gateway, err := l.Gateways.Get(t.Context(), "gw-1")
	if err != nil {
		t.Fatal(err)
	}
	modify(l, l.Targets, "shop", func(target *model.Target) {
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

func TestStatusShowsAlarmsAndEndsWith5OnlyWhereAsked(t *testing.T) {
	l := start(t)
	l.house()
	if _, err := l.run("status", "--check"); err != nil {
		t.Fatalf("without alarms: %v", err)
	}
	l.shop()
	modify(l, l.Volumes, "orders", func(v *model.Volume) { v.Status.Ownership = model.Ownership{State: model.Orphaned, Epoch: 1} })
	out := l.must("status")
	if !holdsAll(out, []string{"version 9.8.7", "Gateways", "2: 2 New", "1: 1 Orphaned", "volume orders: has no owner", "mend:"}) {
		t.Errorf("%s", out)
	}
	if _, err := l.run("status", "--check"); exitCode(err) != exitNotNow {
		t.Errorf("--check with alarms: %v", err)
	}
	var shown overview
	if err := json.Unmarshal([]byte(l.must("status", "-o", "json")), &shown); err != nil || shown.Volumes["Orphaned"] != 1 ||
		shown.Sessions != 2 || len(shown.Alarms) == 0 || shown.Alarms[0].Mend == "" || shown.ControlPlane["version"] != "9.8.7" {
		t.Errorf("%v %+v", err, shown)
	}
}

// unpack returns the files of an archive.
func unpack(t *testing.T, name string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	archive := tar.NewReader(packed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "sluice-dump/")] = string(text)
	}
}

func TestADumpHoldsEverythingButSecrets(t *testing.T) {
	l := start(t)
	l.house()
	l.shop()
	metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "sluice_up 1\n")
	}))
	defer metrics.Close()
	name := filepath.Join(t.TempDir(), "dump.tar.gz")
	l.must("dump", "--output", name, "--metrics", metrics.URL+"/metrics", "--metrics", metrics.URL+"/none")
	files := unpack(t, name)
	for file, word := range map[string]string{"versions.yaml": "9.8.7", "objects/volume.yaml": "name: orders",
		"objects/host.yaml": "passwordSet: true", "objects/session.yaml": "gw-1.2.00023d000001", "events.yaml": "kind: List",
		"status.txt": "Gateways", "doctor.txt": "mend:", "metrics-1.txt": "sluice_up 1", "problems.txt": "metrics-2.txt: answers 404"} {
		if !strings.Contains(files[file], word) {
			t.Errorf("%s lacks %q:\n%s", file, word, files[file])
		}
	}
	for file, text := range files {
		if strings.Contains(text, "open-sesame-123") {
			t.Errorf("the secret is in %s", file)
		}
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestFlagsThatNameObjectsAreCompletedByTheServer(t *testing.T) {
	l := start(t)
	l.house()
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
