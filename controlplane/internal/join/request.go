package join

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"time"

	"sluice.dev/sluice/controlplane/internal/certs"
	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// nodeName is the form of a node's name, a DNS label (RFC 1123).
var nodeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// gatewayNumber is what a gateway's name has after that of its node.
var gatewayNumber = regexp.MustCompile(`^-[1-9][0-9]?$`)

// wanted is a verified request.
type wanted struct {
	// begun is the time of the request, to the second. Certificates for it are signed later.
	begun    time.Time
	gateways []wantedGateway
	// member is the public key of the server's control plane, and hosts the names of its certificate.
	member certs.Request
	hosts  []string
	// administrator is the public key of the server's administrator; nil: the server did not ask for it.
	administrator *certs.Request
}

type wantedGateway struct {
	name    string
	request certs.Request
	record  store.JoinedGateway
}

// check verifies a request. The identities are those that this server decides on; a certificate request gives only its public key. Errors:
// InvalidError, PreconditionError (a gateway belongs to another node, or has another key).
func (j *Join) check(ctx context.Context, request *pb.JoinRequest) (*wanted, error) {
	var invalid, refused model.Violations
	found := &wanted{begun: time.Now().Truncate(time.Second)}
	node := request.GetNode()
	if !nodeName.MatchString(node) {
		invalid.Add("node", "must consist of lower-case letters, digits and '-', as in `server-1`")
	}
	named := map[string]bool{}
	for i, asked := range request.GetGateways() {
		field := fmt.Sprintf("gateways[%d].", i)
		name := asked.GetGateway()
		if len(name) <= len(node) || name[:len(node)] != node || !gatewayNumber.MatchString(name[len(node):]) {
			invalid.Addf(field+"gateway", "must be the node, '-' and a number from 1 to 99, such as `%s-1`", node)
			continue
		}
		if named[name] {
			invalid.Addf(field+"gateway", "%s is named twice", name)
		}
		named[name] = true
		public, err := certs.ParseRequest(asked.GetCertificateRequest())
		if err != nil {
			invalid.Add(field+"certificateRequest", err.Error())
			continue
		}
		gateway := wantedGateway{name, public, store.JoinedGateway{Node: node, PublicKey: public.Fingerprint(), Joined: found.begun}}
		if err := j.checkGateway(ctx, node, gateway, field+"gateway", &refused); err != nil {
			return nil, err
		}
		found.gateways = append(found.gateways, gateway)
	}
	if asked := request.GetMember(); asked != nil {
		found.checkMember(node, asked, &invalid)
	}
	if text := request.GetAdministratorCertificateRequest(); text != "" {
		public, err := certs.ParseRequest(text)
		if err != nil {
			invalid.Add("administratorCertificateRequest", err.Error())
		}
		found.administrator = &public
	}
	if err := invalid.Err(); err != nil {
		return nil, err
	}
	if len(refused) > 0 {
		return nil, &model.PreconditionError{Violations: refused}
	}
	return found, nil
}

func (w *wanted) checkMember(node string, asked *pb.MemberRequest, invalid *model.Violations) {
	if err := etcd.ValidatePeerAddress(asked.GetPeerAddress()); err != nil {
		invalid.Add("member.peerAddress", err.Error())
	}
	var err error
	if w.member, err = certs.ParseRequest(asked.GetCertificateRequest()); err != nil {
		invalid.Add("member.certificateRequest", err.Error())
	}
	host, _, _ := net.SplitHostPort(asked.GetPeerAddress())
	w.hosts = []string{host, node, "localhost", "127.0.0.1", "::1"}
	for i, name := range asked.GetHosts() {
		if net.ParseIP(name) == nil && !model.ValidName(name) {
			invalid.Addf(fmt.Sprintf("member.hosts[%d]", i), "%q is neither an IP address nor a DNS name", name)
		}
		w.hosts = append(w.hosts, name)
	}
}
