package join

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/api"
	"sluice.dev/sluice/controlplane/internal/certs"
	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Join serves JoinService.
type Join struct {
	pb.UnimplementedJoinServiceServer
	Options
}

// Join implements JoinService. It verifies the whole request before it changes anything. A repetition after an interruption finds the
// member that the first call has admitted.
func (j *Join) Join(ctx context.Context, request *pb.JoinRequest) (*pb.JoinResponse, error) {
	signer, err := j.authenticate(ctx, request.GetToken())
	if err != nil {
		return nil, err
	}
	wanted, err := j.check(ctx, request)
	if err != nil {
		return nil, api.StatusOf(err)
	}
	response := &pb.JoinResponse{Authority: signer.PEM(), SystemId: j.Store.SystemID()}
	if err := j.admit(ctx, signer, request, wanted, response); err != nil {
		return nil, err
	}
	for _, gateway := range wanted.gateways {
		signed, err := signer.Sign(certs.Leaf{CommonName: gateway.name, Role: "gateway"}, gateway.request)
		if err != nil {
			return nil, status.Errorf(codes.Internal, "certificate of gateway %s: %v", gateway.name, err)
		}
		if err := j.Store.SetJoinedGateway(ctx, gateway.name, gateway.record); err != nil {
			return nil, api.StatusOf(err)
		}
		response.Gateways = append(response.Gateways, &pb.GatewayCertificate{Gateway: gateway.name, Certificate: signed})
	}
	servers, err := j.servers(ctx)
	if err != nil {
		return nil, err
	}
	for _, server := range servers {
		if server.APIAddress != "" && server.Node != request.GetNode() {
			response.ApiAddresses = append(response.ApiAddresses, server.APIAddress)
		}
	}
	j.Log.Info("a server joined", "node", request.GetNode(), "member", response.GetMember() != nil, "gateways", len(response.GetGateways()))
	return response, nil
}

// refusal is the same for every token that is not valid, so that it tells nothing about the valid ones.
var refusal = status.Error(codes.Unauthenticated, "the token is not valid: it has ended, was revoked, or is another system's. Make another "+
	"one at this system, and use it before it ends")

// authenticate verifies a token, and returns the authority. Errors: UNAUTHENTICATED, FAILED_PRECONDITION (no authority).
func (j *Join) authenticate(ctx context.Context, text string) (*certs.Signer, error) {
	token, err := client.ParseJoinToken(text)
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, err.Error())
	}
	valid, err := j.Store.JoinTokens(ctx)
	if err != nil {
		return nil, api.StatusOf(err)
	}
	hash := sha256.Sum256([]byte(token.Secret))
	matches := 0
	for _, stored := range valid {
		if stored.ID == token.ID {
			matches = subtle.ConstantTimeCompare(stored.Hash, hash[:])
		}
	}
	if matches != 1 {
		return nil, refusal
	}
	signer, err := j.signer(ctx)
	if err != nil {
		return nil, err
	}
	if sha256.Sum256(signer.Raw()) != token.Authority {
		return nil, refusal
	}
	return signer, nil
}

// admit signs the certificate of the server's control plane, and makes it a member if there is room.
func (j *Join) admit(ctx context.Context, signer *certs.Signer, request *pb.JoinRequest, wanted *wanted, response *pb.JoinResponse) error {
	asked := request.GetMember()
	if asked == nil {
		return nil
	}
	if j.Embedded == nil {
		response.NoMemberReason = "the control plane has an external etcd (--etcd-endpoints): start a further replica with its flags"
		return nil
	}
	signed, err := signer.Sign(certs.Leaf{CommonName: certs.ServerName, Role: "server", Hosts: wanted.hosts}, wanted.member)
	if err != nil {
		return status.Errorf(codes.Internal, "server certificate: %v", err)
	}
	record := store.Server{Node: request.GetNode(), PeerAddress: asked.GetPeerAddress(), PublicKey: wanted.member.Fingerprint(), Joined: wanted.begun}
	if wanted.administrator != nil {
		record.AdministratorKey = wanted.administrator.Fingerprint()
	}
	former, err := j.formerRecord(ctx, record.Node)
	if err != nil {
		return api.StatusOf(err)
	}
	others, err := j.Embedded.Admit(ctx, record.Node, record.PeerAddress, former.PeerAddress)
	var exists *etcd.MemberExistsError
	if errors.As(err, &exists) && former.PeerAddress == record.PeerAddress && former.PublicKey == record.PublicKey {
		// The member itself repeats its join, with the private key of the first one.
		former.AdministratorKey = record.AdministratorKey
		record = former
		others, err = j.otherMembers(ctx, record.PeerAddress)
	}
	if errors.Is(err, etcd.ErrMembersFull) || errors.Is(err, etcd.ErrNoPeering) {
		response.NoMemberReason = err.Error()
		return nil
	}
	if err != nil {
		return statusOf(err)
	}
	if err := j.Store.SetServer(ctx, record); err != nil {
		return api.StatusOf(err)
	}
	if wanted.administrator != nil {
		response.AdministratorCertificate, err = signer.Sign(certs.Leaf{CommonName: administratorOf + request.GetNode(), Role: "admin"}, *wanted.administrator)
		if err != nil {
			return status.Errorf(codes.Internal, "administrator's certificate: %v", err)
		}
	}
	response.Member = &pb.MemberAdmission{Certificate: signed, PeerAddresses: others, KeyFile: j.KeyFile, Cluster: j.ClusterName}
	return nil
}

// formerRecord returns the record of the last admission of a node; the zero value: there was none.
func (j *Join) formerRecord(ctx context.Context, node string) (store.Server, error) {
	records, err := j.Store.Servers(ctx)
	if err != nil {
		return store.Server{}, err
	}
	for _, record := range records {
		if record.Node == node {
			return record, nil
		}
	}
	return store.Server{}, nil
}

// otherMembers returns the peer addresses of the members that have started, without one.
func (j *Join) otherMembers(ctx context.Context, without string) ([]string, error) {
	members, err := j.Embedded.Members(ctx)
	if err != nil {
		return nil, err
	}
	var others []string
	for _, member := range members {
		if member.Node != "" && member.Address != without {
			others = append(others, member.Address)
		}
	}
	return others, nil
}

// checkGateway returns why a server may not have the certificate of a gateway. A gateway that has connected keeps its key: another
// server that only knows a token cannot take its identity.
func (j *Join) checkGateway(ctx context.Context, node string, wanted wantedGateway, field string, wrong *model.Violations) error {
	object, err := j.Store.Gateways.Get(ctx, wanted.name)
	var absent *store.NotFoundError
	if errors.As(err, &absent) {
		return nil
	}
	if err != nil {
		return err
	}
	if object.Spec.Node != node {
		wrong.Addf(field, "%s is a gateway of node %s, and this server joins as node %s: give its gateways other names", wanted.name,
			object.Spec.Node, node)
		return nil
	}
	if object.Status.Incarnation == "" {
		return nil
	}
	joined, err := j.Store.JoinedGateway(ctx, wanted.name)
	if err != nil {
		return err
	}
	if joined.Node != node || joined.PublicKey != wanted.record.PublicKey {
		wrong.Addf(field, "%s has connected already, with another key: keep the key files of the first join, or make a certificate with "+
			"`sluice-controlplane certs --gateway %s`", wanted.name, wanted.name)
	}
	return nil
}
