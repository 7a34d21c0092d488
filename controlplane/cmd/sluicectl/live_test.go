package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/controlplane/internal/accounts"
	serving "sluice.dev/sluice/controlplane/internal/api"
	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/etcd/etcdtest"
	"sluice.dev/sluice/controlplane/internal/findings"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/server"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// shared serves all tests; each has a separate cluster in it.
var shared *etcd.Embedded

func TestMain(m *testing.M) {
	_ = os.Setenv("XDG_CONFIG_HOME", "/nonexistent") // the contexts of the user who runs the tests have no effect
	etcdtest.Main(m, &shared)
}

// live is a control plane with a store that tests change in the roles of the leader and the gateways.
type live struct {
	*store.Store
	t       *testing.T
	address string
	// membership serves the members of the store; nil: not served.
	membership pb.MembershipServiceServer
	// stop ends the replica.
	stop func()
}

func start(t *testing.T) *live {
	t.Helper()
	ring, err := keyring.Parse(keyring.GenerateKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := store.Open(t.Context(), shared.Client, store.Options{Cluster: "t-" + model.NewUID(), Keyring: ring})
	if err != nil {
		t.Fatal(err)
	}
	l := &live{Store: kept, t: t, address: "127.0.0.1:0"}
	l.stop = l.serve()
	return l
}

// serve starts a replica of the store, at the address of the previous one, until the returned function is called or the test
// ends.
func (l *live) serve() (stop func()) {
	l.t.Helper()
	t, kept := l.t, l.Store
	log := slog.New(slog.DiscardHandler)
	seen := view.New(kept, log)
	registry := prometheus.NewRegistry()
	facts := func(context.Context) findings.System { return findings.System{EmbeddedStore: true} }
	faults := serving.NewFindings(kept, seen, facts, registry)
	made, err := server.New(server.Options{Store: kept, View: seen, Insecure: true, Log: log, Findings: faults, Membership: l.membership, Accounts: accounts.New(kept),
		Loads: serving.NewLoads(kept, seen, log), Registry: registry,
		Self: serving.ControlPlane{Version: "9.8.7", Replica: "here", EmbeddedStore: true}})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := server.Listen(l.address, true)
	if err != nil {
		t.Fatal(err)
	}
	l.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = seen.Run(ctx) })
	running.Go(func() { _ = faults.Run(ctx) })
	running.Go(func() { _ = made.Serve(listener) })
	stop = sync.OnceFunc(func() { made.Stop(); cancel(); running.Wait() })
	t.Cleanup(stop)
	<-seen.Ready()
	return stop
}

// written is the output of a command, which may be read while it runs.
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

// until waits until a text was printed.
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

// running is a command in progress.
type running struct {
	out, err *written
	ended    chan error
}

func (l *live) begin(ctx context.Context, arguments ...string) *running {
	return l.beginWithInput(ctx, strings.NewReader(""), arguments...)
}

// beginWithInput begins a command with a standard input.
func (l *live) beginWithInput(ctx context.Context, in io.Reader, arguments ...string) *running {
	r := &running{&written{heard: make(chan struct{}, 1)}, &written{heard: make(chan struct{}, 1)}, make(chan error, 1)}
	root := newRoot("sluicectl")
	root.SetIn(in)
	root.SetOut(r.out)
	root.SetErr(r.err)
	root.SetArgs(append(arguments[:1:1], append([]string{"--server", l.address, "--insecure"}, arguments[1:]...)...))
	go func() { r.ended <- execute(ctx, root) }()
	return r
}

// run returns a command's standard output, and its error.
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

// mustWithInput returns the standard output of a command with this standard input.
func (l *live) mustWithInput(in string, arguments ...string) string {
	l.t.Helper()
	r := l.beginWithInput(l.t.Context(), strings.NewReader(in), arguments...)
	if err := <-r.ended; err != nil {
		l.t.Fatalf("%v: %v\n%s", arguments, err, r.out)
	}
	return r.out.String()
}

// prerequisites creates the objects to which volumes and targets refer, and two gateways.
func (l *live) prerequisites() {
	l.must("fabric", "create", "red")
	l.must("gatewaypool", "create", "default", "--fabric", "red")
	l.must("pool", "create", "nvme", "--node", "node-1", "--directory", "/srv/sluice")
	for _, n := range []string{"1", "2"} {
		l.must("gateway", "create", "gw-"+n, "--node", "node-"+n, "--portal", "fabric=red,listen=192.0.2."+n+":3260",
			"--forwarding-address", "192.0.2."+n+":3261")
	}
}

// modify changes an object in the role of the leader.
func modify[T model.Object](l *live, name string, change func(T)) {
	l.t.Helper()
	storetest.During(l.t, l.Store, func(term *store.Term) {
		if _, err := storetest.Modify(l.t.Context(), term, name, func(o T) (bool, error) { change(o); return true, nil }); err != nil {
			l.t.Fatal(err)
		}
	})
}
