package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/health/grpc_health_v1"

	"sluice.dev/sluice/controlplane/internal/accounts"
	"sluice.dev/sluice/controlplane/internal/api"
	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/join"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/server"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/proto/client"
)

// stopTimeout bounds the time for which calls may continue after a stop was requested.
const stopTimeout = 5 * time.Second

// settings of `serve`, from its flags.
type settings struct {
	listen, metrics, dataDir, cluster, keyFile string
	insecure                                   bool
	tls                                        client.Files
	oui                                        uint32
	etcdEndpoints                              []string
	etcdTLS                                    client.Files
	etcdUser, etcdPasswordFile                 string
	systemID                                   string
	logLevel, logFormat                        string
	blocklistFor                               time.Duration
	backupLimit                                time.Duration
	node, peerAddress, joinListen              string
	etcdJoin                                   []string
	console                                    consoleSettings
}

// keyFileName is the name of the generated key file in --data-dir.
const keyFileName = "secrets.key"

// defaultBackupLimit permits a weekly backup to be a day late.
const defaultBackupLimit = 8 * 24 * time.Hour

func serveCommand() *cobra.Command {
	s := &settings{}
	command := &cobra.Command{
		Use:   "serve",
		Short: "Serve the API",
		Long: `Serve the API, and decide on owners, placement and failover. Without --etcd-endpoints, the store is an etcd inside this process,
with its data in --data-dir. With --etcd-peer-address it is one of up to three members, each in a replica of its own.`,
		Example: "  sluice-controlplane serve --tls-ca certs/ca.crt --tls-cert certs/server.crt --tls-key certs/server.key\n" +
			"  sluice-controlplane serve --node a --etcd-peer-address 192.0.2.1:7467 \\\n" +
			"      --tls-ca certs/ca.crt --tls-cert certs/server.crt --tls-key certs/server.key\n" +
			"  sluice-controlplane serve --etcd-endpoints https://192.0.2.1:2379,https://192.0.2.2:2379 --key-file secrets.key \\\n" +
			"      --tls-ca certs/ca.crt --tls-cert certs/server.crt --tls-key certs/server.key",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return unlessStopped(command.Context(), s.run(command.Context()))
		},
	}
	flags := command.Flags()
	flags.StringVar(&s.listen, "listen", "127.0.0.1:7460", "host:port of the API")
	flags.StringVar(&s.metrics, "metrics", "127.0.0.1:7461", "host:port of metrics, /healthz and /readyz; empty: none")
	flags.StringVar(&s.dataDir, "data-dir", "/var/lib/sluice-controlplane", "directory of the embedded etcd and of the generated key")
	flags.StringVar(&s.cluster, "cluster", "default", "name of the system, where several share an etcd")
	flags.StringVar(&s.systemID, "system-id", "", "system id that the store must have (sluicectl status shows it); empty: the id in the "+
		"file "+systemFile+" in --data-dir, or any id without that file")
	flags.StringVar(&s.keyFile, "key-file", "", "keys that encrypt secrets in the store, newest first; "+
		"empty: secrets.key in --data-dir, made where it is missing (embedded etcd only)")
	flags.BoolVar(&s.insecure, "insecure", false, "serve without TLS, on loopback only; every local process is an administrator")
	flags.StringVar(&s.tls.CA, "tls-ca", "", "CA that signed the clients' certificates (PEM)")
	flags.StringVar(&s.tls.Certificate, "tls-cert", "", "certificate of this server (PEM)")
	flags.StringVar(&s.tls.Key, "tls-key", "", "its key (PEM)")
	flags.Uint32Var(&s.oui, "oui", 0, "IEEE company id for device identities of new volumes (NAA 6); 0: NAA 3, locally assigned")
	s.memberFlags(flags)
	s.externalFlags(flags)
	s.console.flags(flags)
	flags.DurationVar(&s.blocklistFor, "blocklist-for", decide.BlocklistFor, "how long fenced Ceph clients stay on the blocklist; "+
		"a former owner may be suspended for very long, so at least a year")
	flags.DurationVar(&s.backupLimit, "backup-limit", defaultBackupLimit, "age at which the last backup by sluicectl becomes the finding "+
		"BackupOld; 0: never, for an etcd that another program backs up")
	flags.StringVar(&s.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&s.logFormat, "log-format", "text", "text or json")
	return command
}

// unlessStopped returns nil for the error of a start that a signal ended: the administrator requested the stop.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	fmt.Fprintln(os.Stderr, "sluice-controlplane: stopped by a signal while it started:", err)
	return nil
}

// externalFlags adds the flags of an external etcd.
func (s *settings) externalFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&s.etcdEndpoints, "etcd-endpoints", nil, "external etcd, as https://host:port; started with "+
		fmt.Sprintf("--max-txn-ops=%d --max-request-bytes=%d", etcd.MaxTxnOps, etcd.MaxRequestBytes))
	flags.StringVar(&s.etcdTLS.CA, "etcd-ca", "", "CA of the external etcd (PEM)")
	flags.StringVar(&s.etcdTLS.Certificate, "etcd-cert", "", "client certificate for it (PEM)")
	flags.StringVar(&s.etcdTLS.Key, "etcd-key", "", "its key (PEM)")
	flags.StringVar(&s.etcdUser, "etcd-user", "", "user at the external etcd, where it has authentication")
	flags.StringVar(&s.etcdPasswordFile, "etcd-password-file", "", "file with the password of that user")
}

func (s *settings) run(ctx context.Context) error {
	log, err := newLog(s.logLevel, s.logFormat)
	if err != nil {
		return err
	}
	if s.backupLimit < 0 {
		return fmt.Errorf("--backup-limit: got %v; it is 0 (no limit) or longer", s.backupLimit)
	}
	if err := s.checkMember(); err != nil {
		return err
	}
	if err := s.console.check(); err != nil {
		return err
	}
	client.LogGRPC(log)
	defer collectLess()()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	endsWithin(ctx)
	registry, ready := prometheus.NewRegistry(), &readiness{}
	closeMetrics, err := serveMetrics(s.metrics, registry, ready, log)
	if err != nil {
		return err
	}
	defer closeMetrics()
	opened, err := s.connect(ctx, stop, log)
	if err != nil {
		return err
	}
	defer opened.close()
	client := opened.client
	ring, err := s.keyring(log)
	if err != nil {
		return err
	}
	kept, err := s.openStore(ctx, client, ring, log)
	if err != nil {
		return err
	}
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	etcd.Measure(client, registry)
	if s.peerAddress != "" {
		if err := kept.SetServer(ctx, s.self()); err != nil {
			return err
		}
	}
	beside, err := s.parts(kept, opened, log, registry)
	if err != nil {
		return err
	}
	joins := s.joinOptions(kept, opened, ring, log)
	people := accounts.New(kept)
	made, listener, err := s.api(kept, beside, &join.Membership{Options: joins}, people, log, registry)
	if err != nil {
		return err
	}
	closeJoins, err := s.serveJoins(made, joins, log)
	if err != nil {
		_ = listener.Close()
		return err
	}
	defer closeJoins()
	if beside.console, err = s.serveConsole(made, kept, people, func(err error) { stop(err) }, log); err != nil {
		_ = listener.Close()
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := beside.run(ctx); err != nil {
			stop(err)
		}
		notifyServiceManager(log, daemon.SdNotifyStopping)
		if beside.console != nil {
			beside.console.Close()
		}
		stopGently(made)
	}()
	log.Info("serving", "api", listener.Addr().String(), "metrics", s.metrics, "tls", !s.insecure,
		"etcd", etcdName(s.etcdEndpoints), "version", version)
	// The listener is open: calls from now on are answered.
	ready.client.Store(client)
	notifyServiceManager(log, daemon.SdNotifyReady+"\nSTATUS=serving the API on "+listener.Addr().String())
	if err := made.Serve(listener); err != nil {
		return fmt.Errorf("API: %w", err)
	}
	<-done
	log.Info("stopped")
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// connect returns a client of the embedded or the external etcd. If an embedded etcd fails, it stops the process with the cause.
func (s *settings) connect(ctx context.Context, stop context.CancelCauseFunc, log *slog.Logger) (*storage, error) {
	if len(s.etcdEndpoints) == 0 {
		embedded, err := s.startEmbedded(ctx, log)
		if err != nil {
			return nil, err
		}
		embedded.Tend(log)
		go func() {
			if err, failed := <-embedded.Failed(); failed && err != nil {
				stop(fmt.Errorf("embedded etcd: %w", err))
			}
		}()
		return &storage{embedded.Client, embedded, embedded.Close}, nil
	}
	external := etcd.External{Endpoints: s.etcdEndpoints, Username: s.etcdUser}
	if s.etcdPasswordFile != "" {
		text, err := os.ReadFile(s.etcdPasswordFile)
		if err != nil {
			return nil, fmt.Errorf("etcd password: %w", err)
		}
		external.Password = trimNewline(string(text))
	}
	if s.etcdTLS != (client.Files{}) {
		with, err := client.Credentials(s.etcdTLS)
		if err != nil {
			return nil, fmt.Errorf("etcd: %w", err)
		}
		external.TLS = with
	}
	opened, err := etcd.Connect(ctx, external, zap.NewNop())
	if err != nil {
		return nil, err
	}
	compacting, end := context.WithCancel(ctx)
	go etcd.KeepCompacted(compacting, opened, log)
	return &storage{client: opened, close: func() { end(); _ = opened.Close() }}, nil
}

// keyring reads the key file. With an embedded etcd, it creates one if none is named or found. An external etcd is shared by
// replicas, which all need the same keys, so the administrator must provide them.
func (s *settings) keyring(log *slog.Logger) (*keyring.Keyring, error) {
	path := s.keyFile
	if path == "" && len(s.etcdEndpoints) > 0 {
		return nil, errors.New("--key-file is missing: replicas of an external etcd need the same keys; " +
			"`sluice-controlplane key` makes one")
	}
	if path == "" {
		path = filepath.Join(s.dataDir, keyFileName)
		if err := makeKeyFile(path); err == nil {
			log.Warn("made a key that encrypts secrets in the store: keep a copy apart from the data", "file", path)
		} else if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return keyring.Read(path)
}

// openStore opens the store of the expected system and writes its system id to the data directory.
func (s *settings) openStore(ctx context.Context, client *clientv3.Client, ring *keyring.Keyring, log *slog.Logger) (*store.Store, error) {
	expected, err := s.expectedSystem()
	if err != nil {
		return nil, err
	}
	kept, err := store.Open(ctx, client, store.Options{Cluster: s.cluster, Keyring: ring, OUI: s.oui, SystemID: expected})
	if err != nil {
		return nil, s.wrongSystem(err)
	}
	if err := writeSystemNote(s.dataDir, systemNote{s.cluster, kept.SystemID()}); err != nil {
		if len(s.etcdEndpoints) == 0 {
			return nil, fmt.Errorf("the system id could not be written to the data directory: %w", err)
		}
		log.Info("this replica cannot write the system id to --data-dir, so it accepts any system: make the directory writable, or set --system-id",
			"system", kept.SystemID(), "problem", err)
	}
	return kept, nil
}

func (s *settings) api(kept *store.Store, beside *parts, members *join.Membership, people *accounts.Accounts, log *slog.Logger, registry prometheus.Registerer,
) (*server.Server, net.Listener, error) {
	options := server.Options{Store: kept, View: beside.view, Findings: beside.findings, Loads: beside.loads, Streams: beside.streams, Membership: members,
		Accounts: people, Insecure: s.insecure, Log: log, Registry: registry,
		Self: api.ControlPlane{Version: version, Replica: s.replica(), EmbeddedStore: s.alone()}}
	options.Certificates, options.Self.Certificates = beside.certificates, beside.certificates.List
	if !s.insecure {
		config, err := server.ServerTLS(s.tls)
		if err != nil {
			return nil, nil, fmt.Errorf("%w; `sluice-controlplane certs` makes some, --insecure does without on loopback", err)
		}
		options.TLS = config
	}
	made, err := server.New(options)
	if err != nil {
		return nil, nil, err
	}
	listener, err := server.Listen(s.listen, s.insecure)
	return made, listener, err
}

func stopGently(made *server.Server) {
	made.Health.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	timer := time.AfterFunc(stopTimeout, made.Stop)
	defer timer.Stop()
	made.GracefulStop()
}

// serveMetrics answers /metrics, /healthz (the process lives) and /readyz (the API is served and the store answers). Without an address
// it opens no port.
func serveMetrics(address string, registry *prometheus.Registry, ready *readiness, log *slog.Logger) (func(), error) {
	if address == "" {
		return func() {}, nil
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if err := ready.check(ctx); err != nil {
			http.Error(w, "the store does not answer: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics are no longer served", "problem", err)
		}
	}()
	return func() { _ = web.Close() }, nil
}

func etcdName(endpoints []string) any {
	if len(endpoints) == 0 {
		return "embedded"
	}
	return endpoints
}
