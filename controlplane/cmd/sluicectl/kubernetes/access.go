package kubernetes

import (
	"context"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clients "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Access is what the flags of a command line say about the cluster and the release.
type Access struct {
	flags   *genericclioptions.ConfigFlags
	release string
}

// Connection is a port of this machine that leads to the control plane. Close ends it.
type Connection struct {
	// Endpoint is the local host:port.
	Endpoint string
	// Credentials are those of the administrator. They verify the name of the release's Service.
	Credentials credentials.TransportCredentials
	Close       func()
}

// AddTo adds kubectl's flags --kubeconfig, --context and --namespace, and --release.
func (a *Access) AddTo(flags *pflag.FlagSet) {
	all := genericclioptions.NewConfigFlags(true)
	a.flags = &genericclioptions.ConfigFlags{KubeConfig: all.KubeConfig, Context: all.Context, Namespace: all.Namespace}
	a.flags.AddFlags(flags)
	flags.StringVar(&a.release, "release", "", "release of the chart, where several are installed")
}

// Connect finds the control plane of the release and connects to one of its pods. Errors are *Error, apart from those of the kubeconfig.
func (a *Access) Connect(ctx context.Context) (*Connection, error) {
	config, err := a.flags.ToRESTConfig()
	if err != nil {
		return nil, &Error{codes.InvalidArgument, "no access to a cluster: " + err.Error() +
			": give --kubeconfig and --context as for kubectl, or --server for a control plane outside of Kubernetes"}
	}
	own, given, err := a.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	// The plugin prints its own errors; warnings of the API server concern the caller's objects, which it does not change.
	config.WarningHandlerWithContext = rest.NoWarnings{}
	client, err := clients.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	found, err := findRelease(ctx, client, own, given, a.release)
	if err != nil {
		return nil, err
	}
	with, err := found.credentials(ctx, client)
	if err != nil {
		return nil, err
	}
	pod, err := found.readyPod(ctx, client)
	if err != nil {
		return nil, err
	}
	endpoint, stop, err := forward(ctx, config, client, pod)
	if err != nil {
		return nil, err
	}
	return &Connection{Endpoint: endpoint, Credentials: with, Close: stop}, nil
}
