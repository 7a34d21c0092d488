// Package join admits new servers to a system: tokens, certificates that the system's authority signs, and the members of the embedded
// etcd. Membership is for administrators, on the API. Join is for servers that have only a token, on a listener of its own.
package join

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/api"
	"sluice.dev/sluice/controlplane/internal/certs"
	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/store"
)

// Cluster is the embedded etcd with its members.
type Cluster interface {
	Members(ctx context.Context) ([]etcd.Member, error)
	Admit(ctx context.Context, node, address, former string) ([]string, error)
	Remove(ctx context.Context, address string) error
}

// Options configure both services.
type Options struct {
	Store *store.Store
	// Embedded is nil for an external etcd.
	Embedded Cluster
	// ClusterName is the name of the system (--cluster).
	ClusterName string
	// KeyFile is the text of the key file.
	KeyFile string
	// Self is the record of this server.
	Self store.Server
	// Trusts reports whether this process accepts certificates of an authority (DER). The error says how to change that.
	Trusts func(authority []byte) error
	// Role returns the role of a call's caller.
	Role func(context.Context) string
	Log  *slog.Logger
}

// signer returns the authority of the system. Error: FAILED_PRECONDITION if the store has none.
func (o *Options) signer(ctx context.Context) (*certs.Signer, error) {
	certificate, key, err := o.Store.Authority(ctx)
	if err != nil {
		return nil, api.StatusOf(err)
	}
	if certificate == "" {
		return nil, status.Error(codes.FailedPrecondition, "the store has no certificate authority, so the control plane cannot sign "+
			"certificates. An administrator stores its certificate and key once (`ImportAuthority`; ca.crt and ca.key of "+
			"`sluice-controlplane certs`). Where cert-manager or another authority signs, get certificates there")
	}
	signer, err := certs.ParseSigner([]byte(certificate), []byte(key.Reveal()))
	if err != nil {
		return nil, status.Errorf(codes.Internal, "the certificate authority in the store: %v", err)
	}
	return signer, nil
}

// statusOf converts an error of the embedded etcd, or of the store.
func statusOf(err error) error {
	var exists *etcd.MemberExistsError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exists), errors.Is(err, etcd.ErrLastMember), errors.Is(err, etcd.ErrNoPeering):
		return status.Error(codes.FailedPrecondition, err.Error())
	case errors.Is(err, etcd.ErrNoMember):
		return status.Error(codes.NotFound, err.Error())
	case errors.Is(err, etcd.ErrNotNow):
		return status.Error(codes.Unavailable, err.Error())
	}
	return api.StatusOf(err)
}
