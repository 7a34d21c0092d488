// Package host is the controller of Hosts.
package host

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	"sluice.dev/sluice/operator/internal/controlplane"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// +kubebuilder:rbac:groups=sluice.dev,resources=hosts,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=hosts/status;hosts/finalizers,verbs=get;update;patch

// Setup adds the controller to a manager; the Secrets that resources name are read again after each `secretsEvery`.
func Setup(mgr manager.Manager, connection grpc.ClientConnInterface, secretsEvery time.Duration) error {
	return mirror.Setup(mgr, mirror.Kind[*v1alpha1.Host, *pb.Host]{
		Noun: controlplane.Hosts(connection),
		Want: want, Hide: hide, Show: show,
		SecretVersions: func(r *v1alpha1.Host) *string { return &r.Status.SecretVersions },
		SecretsEvery:   secretsEvery,
	}, nil)
}

func want(ctx context.Context, r *v1alpha1.Host, secrets *mirror.SecretReader) (*pb.Host, error) {
	spec := &pb.HostSpec{
		Initiators: r.Spec.Initiators, AllowUnauthenticated: r.Spec.AllowUnauthenticated, MaxSessions: r.Spec.MaxSessions,
	}
	for _, place := range r.Spec.Switches {
		spec.Switches = append(spec.Switches, place.Fabric+"/"+place.Switch)
	}
	credentials := func(field string, from *v1alpha1.ChapCredentials) (*pb.ChapCredentials, error) {
		if from == nil {
			return nil, nil
		}
		name := types.NamespacedName{Namespace: r.Namespace, Name: from.SecretRef.Name}
		password, err := secrets.Read(ctx, field+".secretRef", name, from.SecretRef.Key)
		return &pb.ChapCredentials{Username: from.Username, Password: strings.TrimRight(password, "\r\n")}, err
	}
	var err error
	if spec.Chap, err = credentials("spec.chap", r.Spec.Chap); err != nil {
		return nil, err
	}
	if spec.MutualChap, err = credentials("spec.mutualChap", r.Spec.MutualChap); err != nil {
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

func show(r *v1alpha1.Host, have *pb.Host) { r.Status.Sessions = have.GetStatus().GetSessions() }
