// Package host is the controller of Hosts.
package host

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/convert"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// +kubebuilder:rbac:groups=sluice.dev,resources=hosts,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=hosts/status;hosts/finalizers,verbs=get;update;patch

// Setup adds the controller to a manager; the Secrets that resources name are read again after each `secretsEvery`.
func Setup(mgr manager.Manager, connection mirror.ControlPlane, secretsEvery time.Duration) error {
	return mirror.Setup(mgr, connection.Findings, mirror.Managed[*v1alpha1.Host, *pb.Host]{
		Noun: mirror.Hosts(connection),
		Want: want, Hide: hide, Show: convert.ShowHost,
		SecretVersions: func(r *v1alpha1.Host) *string { return &r.Status.SecretVersions },
		SecretsEvery:   secretsEvery,
	}, nil)
}

func want(ctx context.Context, r *v1alpha1.Host, secrets *mirror.SecretReader) (*pb.Host, error) {
	spec, err := convert.HostSpec(r, secrets.Of(ctx))
	if err != nil {
		return nil, err
	}
	return &pb.Host{Spec: spec}, nil
}

func hide(host *pb.Host) {
	for _, chap := range []*pb.ChapCredentials{host.GetSpec().GetChap(), host.GetSpec().GetMutualChap()} {
		if chap != nil {
			chap.Password, chap.PasswordSet = "", true
		}
	}
}
