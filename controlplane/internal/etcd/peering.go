package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

// maxLearners bounds the members that receive their data at the same time. It must be the same in all members.
const maxLearners = 2

// Peering makes an embedded etcd one member of several. The members connect to each other with mutual TLS.
type Peering struct {
	// Node is the name of the member.
	Node string
	// Address is host:port: where the member listens for the others, and where they reach it.
	Address string
	// Join has addresses of members of the cluster that a member without data joins. Empty: such a member founds a cluster. A member
	// with data does not use it.
	Join []string
	// CA, Certificate and Key are files in PEM. The certificate is for servers and for clients, and names the host of Address.
	CA, Certificate, Key string
	// CommonName is that of the certificates of all members.
	CommonName string
	// Waiting is called every ten seconds while the start waits for other members, with the reason.
	Waiting func(reason string)
}

// DirectoryLostError: the cluster knows that a joining member has had data. An empty member with its identity would vote
// as if it had never confirmed any change, and changes that were acknowledged could be lost.
type DirectoryLostError struct {
	// Directory is empty, and was that of the member Node at Address.
	Directory, Node, Address string
}

func (e *DirectoryLostError) Error() string {
	return fmt.Sprintf("the data directory %s is empty, but the member %s at %s has had data: restore the directory, or remove the member "+
		"(RemoveMember of the API) and join again with a token", e.Directory, e.Node, e.Address)
}

func peerURL(address string) url.URL { return url.URL{Scheme: "https", Host: address} }

// addressOf returns host:port of a peer URL; empty for that of a member without listener.
func addressOf(peer string) string {
	parsed, err := url.Parse(peer)
	if err != nil || parsed.Scheme != "https" {
		return ""
	}
	return parsed.Host
}

// ValidatePeerAddress returns an error unless an address is host:port with a host by which other servers can reach it.
func ValidatePeerAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not host:port", address)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("%q names no host: give the address at which the other members reach this one", address)
	}
	if number, err := net.LookupPort("tcp", port); err != nil || number == 0 {
		return fmt.Errorf("%q has no valid port: it is a number from 1 to 65535", address)
	}
	if _, err := url.Parse("https://" + address); err != nil {
		return fmt.Errorf("%q is not host:port", address)
	}
	return nil
}

func (p *Peering) validate() error {
	if err := ValidatePeerAddress(p.Address); err != nil {
		return fmt.Errorf("--etcd-peer-address: %w", err)
	}
	for _, address := range p.Join {
		if err := ValidatePeerAddress(address); err != nil {
			return fmt.Errorf("--etcd-join: %w", err)
		}
	}
	if p.CA == "" || p.Certificate == "" || p.Key == "" {
		return errors.New("--etcd-peer-address needs --tls-ca, --tls-cert and --tls-key: members connect with mutual TLS")
	}
	pair, err := tls.LoadX509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return fmt.Errorf("--tls-cert %s with --tls-key %s: %w", p.Certificate, p.Key, err)
	}
	return p.suits(pair.Leaf)
}

// suits returns why a certificate is not one of a member, with the remedy.
func (p *Peering) suits(certificate *x509.Certificate) error {
	const remedy = "; make another one: `sluice-controlplane certs`, or join with a token"
	if certificate.Subject.CommonName != p.CommonName {
		return fmt.Errorf("--tls-cert %s has the common name %q, and other members accept only %q%s", p.Certificate,
			certificate.Subject.CommonName, p.CommonName, remedy)
	}
	for _, usage := range []struct {
		x509.ExtKeyUsage
		text string
	}{{x509.ExtKeyUsageServerAuth, "server"}, {x509.ExtKeyUsageClientAuth, "client"}} {
		if !slices.Contains(certificate.ExtKeyUsage, usage.ExtKeyUsage) {
			return fmt.Errorf("--tls-cert %s lacks the usage %q (TLS Web %s Authentication), and members need both%s", p.Certificate,
				usage.text+"Auth", usage.text, remedy)
		}
	}
	host, _, _ := net.SplitHostPort(p.Address)
	if err := certificate.VerifyHostname(host); err != nil {
		return fmt.Errorf("--tls-cert %s does not name the host of --etcd-peer-address: %w%s", p.Certificate, err, remedy)
	}
	return nil
}

// tlsInfo describes both ends of the connections between members.
func (p *Peering) tlsInfo() transport.TLSInfo {
	return transport.TLSInfo{
		TrustedCAFile: p.CA, CertFile: p.Certificate, KeyFile: p.Key, ClientCertAuth: true,
		// Gateways and administrators have certificates of the same authority. The common name tells a member from them.
		AllowedCNs: []string{p.CommonName},
		// A server may connect from another one of its addresses than that in its certificate.
		SkipClientSANVerify: true,
	}
}

// client returns an HTTP client of other members.
func (p *Peering) client(timeout time.Duration) (*http.Client, error) {
	config, err := p.tlsInfo().ClientConfig()
	if err != nil {
		return nil, err
	}
	config.MinVersion = tls.VersionTLS13
	return &http.Client{Timeout: timeout, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}, nil
}

// configure makes the configuration of an etcd that of a member with listener.
func (p *Peering) configure(config *embed.Config) error {
	listen, err := net.ResolveTCPAddr("tcp", p.Address)
	if err != nil {
		return fmt.Errorf("--etcd-peer-address %s: %w", p.Address, err)
	}
	own := peerURL(p.Address)
	config.Name = p.Node
	config.ListenPeerUrls = []url.URL{peerURL(listen.String())}
	config.AdvertisePeerUrls = []url.URL{own}
	config.PeerTLSInfo = p.tlsInfo()
	config.TlsMinVersion = "TLS1.3"
	config.MaxLearners = maxLearners
	members := []string{p.Node + "=" + own.String()}
	if len(p.Join) > 0 && !hasData(config.Dir) {
		found, err := p.discover(config.Dir)
		if err != nil {
			return err
		}
		config.ClusterState = embed.ClusterStateFlagExisting
		members = found
	}
	config.InitialCluster = strings.Join(members, ",")
	return nil
}

// hasData reports whether an etcd has started in its directory before.
func hasData(directory string) bool { return wal.Exist(filepath.Join(directory, "member", "wal")) }
