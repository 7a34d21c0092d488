package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/certs"
	"sluice.dev/sluice/controlplane/internal/etcd"
)

// extendStart is the time that systemd gives a start which waits for other members, from each report on. It is longer than the interval
// of the reports.
const extendStart = "EXTEND_TIMEOUT_USEC=60000000"

// storage is the connection to etcd.
type storage struct {
	client *clientv3.Client
	// embedded is nil for an external etcd.
	embedded *etcd.Embedded
	close    func()
}

// memberFlags adds the flags of an embedded etcd with several members.
func (s *settings) memberFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.node, "node", "", "name of this server among the members of the embedded etcd; empty: the host name")
	flags.StringVar(&s.peerAddress, "etcd-peer-address", "", "host:port at which the embedded etcd listens for other members, and at which they "+
		"reach it; empty: it is the only member and has no listener")
	flags.StringSliceVar(&s.etcdJoin, "etcd-join", nil, "peer addresses of the members that this one joins, host:port, if --data-dir has no data; "+
		"empty: it founds a system")
	flags.StringVar(&s.joinListen, "join-listen", "", "host:port at which new servers join with a token; empty: none can join here")
}

// nodeName returns the name of this server.
func (s *settings) nodeName() string { return cmp.Or(s.node, hostName()) }

// alone reports whether no other replica can use this one's store.
func (s *settings) alone() bool { return len(s.etcdEndpoints) == 0 && s.peerAddress == "" }

// checkMember returns which flags of a member contradict others.
func (s *settings) checkMember() error {
	switch {
	case s.peerAddress != "" && len(s.etcdEndpoints) > 0:
		return errors.New("--etcd-peer-address is for the embedded etcd, and --etcd-endpoints names an external one: give one of them")
	case s.peerAddress != "" && s.insecure:
		return errors.New("--etcd-peer-address needs TLS: give --tls-ca, --tls-cert and --tls-key instead of --insecure")
	case s.joinListen != "" && s.insecure:
		return errors.New("--join-listen needs TLS: give --tls-ca, --tls-cert and --tls-key instead of --insecure")
	case len(s.etcdJoin) > 0 && s.peerAddress == "":
		return errors.New("--etcd-join needs --etcd-peer-address, at which the other members reach this one")
	}
	return nil
}

// startEmbedded starts the etcd in this process.
func (s *settings) startEmbedded(ctx context.Context, log *slog.Logger) (*etcd.Embedded, error) {
	if s.peerAddress == "" {
		return etcd.StartEmbedded(ctx, s.dataDir, etcd.FatalLog(s.dataDir, log))
	}
	if err := s.checkJoinedKeys(); err != nil {
		return nil, err
	}
	return etcd.StartMember(ctx, s.dataDir, etcd.Peering{
		Node: s.nodeName(), Address: s.peerAddress, Join: s.etcdJoin, CA: s.tls.CA, Certificate: s.tls.Certificate, Key: s.tls.Key,
		CommonName: certs.ServerName,
		Waiting: func(reason string) {
			log.Info("the start waits", "reason", reason)
			notifyServiceManager(log, extendStart+"\nSTATUS=waiting: "+reason)
		},
	}, etcd.FatalLog(s.dataDir, log))
}

// checkJoinedKeys prevents that a member which joins makes a key of its own: it could not read the secrets of the store.
func (s *settings) checkJoinedKeys() error {
	if len(s.etcdJoin) == 0 || s.keyFile != "" {
		return nil
	}
	path := filepath.Join(s.dataDir, keyFileName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is missing: a member that joins needs the keys of the others; copy the file of another member, or join with a "+
			"token", path)
	}
	return nil
}
