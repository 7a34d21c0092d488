// Command sluice-operator reconciles Sluice's custom resources with the control plane, and runs gateways as pods.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/certificate"
	"sluice.dev/sluice/operator/internal/connection"
	"sluice.dev/sluice/operator/internal/controller/events"
	"sluice.dev/sluice/operator/internal/controller/fabric"
	"sluice.dev/sluice/operator/internal/controller/gateway"
	"sluice.dev/sluice/operator/internal/controller/gatewaypool"
	"sluice.dev/sluice/operator/internal/controller/host"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	"sluice.dev/sluice/operator/internal/controller/snapshot"
	"sluice.dev/sluice/operator/internal/controller/storagepool"
	"sluice.dev/sluice/operator/internal/controller/target"
	"sluice.dev/sluice/operator/internal/controller/volume"
	sluiceclient "sluice.dev/sluice/proto/client"
)

// resync is the interval at which every resource is compared with the control plane, regardless of watches.
const resync = 10 * time.Minute

// settings are the flags.
type settings struct {
	controlPlane            connection.Options
	gateways                gateway.Options
	kubeconfig              string
	metrics, probes         string
	elect                   bool
	lease, renewal, attempt time.Duration
	secretsEvery            time.Duration
	logLevel                slog.Level
	renew                   []string
	secretPrefix, leaseName string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		os.Exit(1)
	}
}

func command() *cobra.Command { return (&settings{}).command() }

func (s *settings) command() *cobra.Command {
	command := &cobra.Command{
		Use: "sluice-operator", Short: "Keep Sluice's custom resources and the control plane alike, and run gateways as pods",
		Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error { return s.run(command.Context()) },
	}
	flags := command.Flags()
	s.controlPlane.AddFlags(flags, "", "sluice:operator")
	flags.StringVar(&s.gateways.Authority, "authority", "", "Secret of the authority that signs gateways' certificates; "+
		"none: another program makes the Secrets <gateway>-tls")
	flags.StringSliceVar(&s.renew, "renew", nil,
		"renew the system's own certificates, too; the names that the control plane is reached by")
	flags.StringVar(&s.secretPrefix, "secret-prefix", certificate.DefaultPrefix,
		"prefix of the names of the Secrets with the system's own certificates: PREFIX-controlplane-tls and others")
	flags.StringSliceVar(&s.gateways.ControlPlane, "gateway-control-plane", nil,
		"replicas of the control plane that gateways connect to, as host:port; none: as --server")
	flags.StringVar(&s.gateways.SeccompProfile, "gateway-seccomp-profile", "",
		"seccomp profile of gateways whose pool names none: a file below the kubelet's seccomp directory on each node; none: no filter")
	flags.StringVar(&s.gateways.Namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"namespace of gateways' pods, their certificates (Secrets named <gateway>-tls) and the leader's lease ($POD_NAMESPACE)")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "how to reach Kubernetes; empty: as a pod does, or $KUBECONFIG")
	flags.StringVar(&s.metrics, "metrics", ":7463", "host:port of metrics; 0: none")
	flags.StringVar(&s.probes, "probes", ":7464", "host:port of /healthz and /readyz; 0: none")
	flags.DurationVar(&s.secretsEvery, "secrets-every", 30*time.Second, "time between two reads of the Secrets that resources name, 1s or more")
	flags.BoolVar(&s.elect, "leader-elect", true, "of several replicas one works")
	flags.StringVar(&s.leaseName, "leader-lease-name", "sluice-operator", "name of the leader's lease")
	flags.DurationVar(&s.lease, "leader-lease", 15*time.Second, "how long a leader that is silent is waited for")
	flags.DurationVar(&s.renewal, "leader-renew", 10*time.Second, "how long a leader goes on without renewing its lease")
	flags.DurationVar(&s.attempt, "leader-retry", 2*time.Second, "time between attempts to get or renew the lease")
	command.AddCommand(prepareCommand(), unusedCommand(), portalsCommand(), keepFileCommand())
	flags.TextVar(&s.logLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")
	return command
}

func (s *settings) run(ctx context.Context) error {
	handler := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: s.logLevel})
	ctrl.SetLogger(logr.FromSlogHandler(handler))
	sluiceclient.LogGRPC(slog.New(handler))
	if s.gateways.Namespace == "" {
		return errors.New("--namespace is missing: the namespace of gateways' pods")
	}
	if s.secretsEvery < time.Second {
		return fmt.Errorf("--secrets-every is %s: 1s or more is possible", s.secretsEvery)
	}
	s.complete()
	opened, err := connection.Open(s.controlPlane)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }()
	mgr, err := s.manager()
	if err != nil {
		return err
	}
	plane := mirror.ControlPlane{ClientConnInterface: opened, Findings: mirror.NewFindings(opened)}
	for _, add := range []func() error{
		func() error { return fabric.Setup(mgr, plane) },
		func() error { return storagepool.Setup(mgr, plane, s.secretsEvery) },
		func() error { return volume.Setup(mgr, plane) },
		func() error { return snapshot.Setup(mgr, plane) },
		func() error { return host.Setup(mgr, plane, s.secretsEvery) },
		func() error { return target.Setup(mgr, plane) },
		func() error { return gatewaypool.Setup(mgr, plane, s.gateways.Namespace) },
		func() error { return gateway.Setup(mgr, plane, s.gateways) },
		func() error { return events.Setup(mgr, opened) },
		func() error { return mgr.Add(plane.Findings) },
		func() error { return s.renewing(mgr) },
		func() error { return mgr.AddHealthzCheck("alive", healthz.Ping) },
		func() error { return mgr.AddReadyzCheck("ready", healthz.Ping) },
	} {
		if err := add(); err != nil {
			return err
		}
	}
	return mgr.Start(ctx)
}

// complete sets the gateways' control plane to the operator's own replicas if no flag names others.
func (s *settings) complete() {
	s.gateways.Insecure = s.controlPlane.Insecure
	if len(s.gateways.ControlPlane) == 0 {
		s.gateways.ControlPlane = []string{s.controlPlane.Server}
	}
}

// Rights with a namespace here are granted in the operator's own namespace: the right to create pods in another one would give
// access to all of its Secrets. Events are about resources in any namespace; only Events about the lease use the older API.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sluice-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sluice-system,resources=leases,resourceNames=sluice-operator,verbs=get;update;patch
// +kubebuilder:rbac:groups="",namespace=sluice-system,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

func (s *settings) manager() (manager.Manager, error) {
	config, err := kubernetes(s.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return manager.New(config, s.options(scheme))
}

func (s *settings) options(scheme *runtime.Scheme) manager.Options {
	every := resync
	here := map[string]cache.Config{s.gateways.Namespace: {}}
	return manager.Options{
		Scheme: scheme,
		Cache: cache.Options{SyncPeriod: &every, ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Namespaces: here}, &corev1.Service{}: {Namespaces: here}, &policyv1.PodDisruptionBudget{}: {Namespaces: here},
		}},
		// A cache of Secrets would require the right to list them: each is read from the API server by name when it is needed.
		Client:  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Metrics: metricsserver.Options{BindAddress: s.metrics}, HealthProbeBindAddress: s.probes,
		LeaderElection: s.elect, LeaderElectionID: s.leaseName, LeaderElectionNamespace: s.gateways.Namespace,
		LeaderElectionReleaseOnCancel: true, LeaseDuration: &s.lease, RenewDeadline: &s.renewal, RetryPeriod: &s.attempt,
	}
}

func kubernetes(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return ctrl.GetConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}
