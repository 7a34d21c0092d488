// Package etcd provides the store's etcd: one inside this process if no endpoints are configured, else a client of an external
// cluster.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// Bounds of an etcd that serves Sluice.
const (
	// MaxTxnOps allows a transaction that stores a target with thousands of LUNs; etcd's default is 128. An external etcd must be
	// started with at least this --max-txn-ops.
	MaxTxnOps = 16384
	// MaxRequestBytes bounds one transaction, in bytes; etcd's default of 1.5 MiB is too small for such a target.
	MaxRequestBytes = 8 << 20
	// quotaBytes is the size at which etcd refuses writes until it was reduced: see makeRoom.
	quotaBytes = 8 << 30
	// historyKept is the time for which changes can be watched.
	historyKept = 10 * time.Minute

	startTimeout   = 60 * time.Second
	dialTimeout    = 5 * time.Second
	keepAlive      = 3 * time.Second
	keepAliveReply = 3 * time.Second
)

// Embedded is an etcd in this process: the only member, or one of several.
type Embedded struct {
	server *embed.Etcd
	// peering is nil if it has no listener.
	peering *Peering
	failed  chan error
	// lock of the data directory, held until Close.
	lock *os.File
	// tended ends when Tend has ended; stop requests that.
	tended sync.WaitGroup
	stop   chan struct{}
	// Client talks to it without a socket.
	Client *clientv3.Client
}

// StartEmbedded starts an etcd whose data is in a directory, which it creates if needed. Only this process can access the etcd.
// Errors name the directory; DirectoryInUseError: another process uses it. If the context ends before etcd is ready, it returns
// at once; the caller must then end the process.
func StartEmbedded(ctx context.Context, directory string, log *zap.Logger) (*Embedded, error) {
	return start(ctx, directory, log, quotaBytes, nil)
}

// StartMember is StartEmbedded for a member of several. Only other members can connect to it. It returns when the member
// votes and a majority is there. Errors: also those of a Peering that cannot be used, and DirectoryLostError.
func StartMember(ctx context.Context, directory string, peering Peering, log *zap.Logger) (*Embedded, error) {
	if err := peering.validate(); err != nil {
		return nil, err
	}
	return start(ctx, directory, log, quotaBytes, &peering)
}

func start(ctx context.Context, directory string, log *zap.Logger, quota int64, peering *Peering) (*Embedded, error) {
	// A server that starts after its caller's context has ended would write files after this function has returned.
	if ctx.Err() != nil {
		return nil, fmt.Errorf("embedded etcd in %s: %w", directory, context.Cause(ctx))
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, fmt.Errorf("embedded etcd: %w", err)
	}
	lock, err := lockDirectory(directory)
	if err != nil {
		return nil, fmt.Errorf("embedded etcd: %w", err)
	}
	e, err := startLocked(ctx, directory, log, quota, peering)
	if err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("embedded etcd in %s: %w", directory, err)
	}
	e.lock = lock
	return e, nil
}

func startLocked(ctx context.Context, directory string, log *zap.Logger, quota int64, peering *Peering) (*Embedded, error) {
	config := embeddedConfig(directory, log, quota)
	if peering != nil {
		if err := peering.configure(config); err != nil {
			return nil, err
		}
	}
	server, err := startServer(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := awaitReady(ctx, server, peering); err != nil {
		server.Close()
		return nil, err
	}
	e := &Embedded{server: server, peering: peering, failed: make(chan error, 1), stop: make(chan struct{}),
		Client: v3client.New(server.Server)}
	if err := e.enter(ctx); err != nil {
		_ = e.Client.Close()
		server.Close()
		return nil, err
	}
	e.tended.Go(e.watchFailure)
	return e, nil
}

// awaitReady waits until a started etcd answers. A member of several needs a majority for that, however long its servers need.
func awaitReady(ctx context.Context, server *embed.Etcd, peering *Peering) error {
	limit := startTimeout
	if peering != nil {
		limit = waitingEvery
	}
	ticker := time.NewTicker(limit)
	defer ticker.Stop()
	for {
		select {
		case <-server.Server.ReadyNotify():
			return nil
		case err := <-server.Err():
			return err
		case <-server.Server.StopNotify():
			return errRemoved
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		if peering == nil {
			return fmt.Errorf("not ready within %s: see whether the disk is well (the kernel's log). If it is one member of several, it needs "+
				"--etcd-peer-address", startTimeout)
		}
		peering.report("the majority of the members of etcd is not there: start the other servers, or see whether they reach " + peering.Address)
	}
}

// errRemoved: etcd stops by itself for no other reason than this one, and failures of the disk, which end the process.
var errRemoved = errors.New("this member was removed from the cluster: its data is void. To join again, move its directory away and join with " +
	"a new token")

// watchFailure reports that the etcd has stopped by itself.
func (e *Embedded) watchFailure() {
	select {
	case <-e.stop:
	case err := <-e.server.Err():
		e.failed <- err
	case <-e.server.Server.StopNotify():
		e.failed <- errRemoved
	}
}

func embeddedConfig(directory string, log *zap.Logger, quota int64) *embed.Config {
	config := embed.NewConfig()
	config.Name = memberName
	config.Dir = filepath.Join(directory, Directory)
	config.MaxTxnOps = MaxTxnOps
	config.MaxRequestBytes = MaxRequestBytes
	config.QuotaBackendBytes = quota
	config.AutoCompactionMode = "periodic"
	config.AutoCompactionRetention = historyKept.String()
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	// It has no listener: a client that could connect could read and change everything.
	config.ListenClientUrls, config.ListenPeerUrls = nil, nil
	config.InitialCluster = config.Name + "=" + config.AdvertisePeerUrls[0].String()
	config.InitialClusterToken = clusterToken()
	return config
}

// startServer is embed.StartEtcd with a context, because etcd reads its files without one. A server that starts after the context
// has ended is closed again.
func startServer(ctx context.Context, config *embed.Config) (*embed.Etcd, error) {
	type result struct {
		server *embed.Etcd
		err    error
	}
	started := make(chan result, 1)
	go func() {
		server, err := embed.StartEtcd(config)
		started <- result{server, err}
	}()
	select {
	case r := <-started:
		return r.server, r.err
	case <-ctx.Done():
		go func() {
			if r := <-started; r.err == nil {
				r.server.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// Failed returns a channel that reports when the etcd has stopped by itself, and why.
func (e *Embedded) Failed() <-chan error { return e.failed }

// Close stops the etcd. Everything that was stored is on disk.
func (e *Embedded) Close() {
	close(e.stop)
	e.tended.Wait()
	_ = e.Client.Close() // it only reports that its context was cancelled
	e.server.Close()
	_ = e.lock.Close() // releases the lock
}

// External has the access to an etcd cluster.
type External struct {
	// Endpoints are host:port or URLs.
	Endpoints []string
	// TLS is nil for plain connections, which are accepted on loopback only. Every connection uses it, even to an http://
	// endpoint.
	TLS      credentials.TransportCredentials
	Username string
	Password string
}

// Connect returns a client of an external etcd, after the etcd has answered a request.
func Connect(ctx context.Context, external External, log *zap.Logger) (*clientv3.Client, error) {
	if len(external.Endpoints) == 0 {
		return nil, errors.New("etcd: no endpoints")
	}
	if external.TLS == nil {
		for _, endpoint := range external.Endpoints {
			if !onLoopback(endpoint) {
				return nil, fmt.Errorf("etcd endpoint %s is not on loopback and there is no TLS for it: "+
					"give a CA and a certificate", endpoint)
			}
		}
	}
	options := []grpc.DialOption{grpc.WithUserAgent("sluice-controlplane")}
	if external.TLS != nil { // not as a tls.Config, which would keep the CA from the start of the process
		options = append(options, grpc.WithTransportCredentials(external.TLS))
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: external.Endpoints, Username: external.Username, Password: external.Password,
		DialTimeout: dialTimeout, DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: keepAliveReply, Logger: log,
		MaxCallSendMsgSize: MaxRequestBytes,
		DialOptions:        options,
	})
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if _, err := client.Get(ctx, "sluice-probe", clientv3.WithKeysOnly()); err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("etcd at %v does not answer: %w", external.Endpoints, err)
	}
	return client, nil
}

func onLoopback(endpoint string) bool {
	host := endpoint
	if parsed, err := url.Parse(endpoint); err == nil && parsed.Host != "" {
		if parsed.Scheme == "unix" || parsed.Scheme == "unixs" {
			return true
		}
		host = parsed.Host
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
