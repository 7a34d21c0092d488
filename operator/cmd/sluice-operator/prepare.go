package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"sluice.dev/sluice/operator/internal/certificate"
	"sluice.dev/sluice/operator/internal/csi/attachment"
)

// renewEvery is the interval at which certificates are checked; there are months to renew one.
const renewEvery = time.Hour

func prepareCommand() *cobra.Command {
	var kubeconfig, storeKey, csiKey string
	var serverNames []string
	s := certificate.Secrets{}
	command := &cobra.Command{
		Use:   "prepare",
		Short: "Make the Secrets that a system in Kubernetes begins with, where they are missing",
		Long: "Make the Secrets that a system in Kubernetes begins with: an authority, and certificates of control plane, operator, " +
			"CSI driver and administrator signed by it; the key of the control plane's store; the key that nodes' CHAP secrets are " +
			"derived from. What is there stays; certificates " +
			"are renewed when a third of their time is left.",
		Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := kubernetes(kubeconfig)
			if err != nil {
				return err
			}
			if s.Client, err = client.New(config, client.Options{}); err != nil {
				return err
			}
			if err := makeKeys(command.Context(), &s, storeKey, csiKey); err != nil {
				return err
			}
			return prepare(command.Context(), &s, serverNames)
		},
	}
	flags := command.Flags()
	flags.StringVar(&kubeconfig, "kubeconfig", "", "how to reach Kubernetes; empty: as a pod does, or $KUBECONFIG")
	flags.StringVar(&s.Namespace, "namespace", "sluice-system", "namespace of the Secrets")
	flags.StringVar(&s.Authority, "authority", "", "Secret of the authority; none: no certificates are made")
	flags.StringVar(&s.Prefix, "secret-prefix", certificate.DefaultPrefix,
		"prefix of the names of the Secrets with the system's own certificates: PREFIX-controlplane-tls and others")
	flags.StringVar(&storeKey, "store-key", "", "Secret of the store's key; none: none is made")
	flags.StringVar(&csiKey, "csi-key", "", "Secret of the CSI driver's key; none: none is made")
	flags.StringSliceVar(&serverNames, "server-name", nil, "names that the control plane is reached by")
	return command
}

// makeKeys creates the Secrets of the keys that have a name.
func makeKeys(ctx context.Context, s *certificate.Secrets, storeKey, csiKey string) error {
	for _, once := range []struct {
		name    string
		content func() (map[string][]byte, error)
	}{{storeKey, certificate.StoreKey}, {csiKey, csiDriverKey}} {
		if once.name == "" {
			continue
		}
		if err := s.Once(ctx, once.name, corev1.SecretTypeOpaque, once.content); err != nil {
			return err
		}
	}
	return nil
}

// csiDriverKey returns the content of the CSI controller's --chap-key-file.
func csiDriverKey() (map[string][]byte, error) {
	return map[string][]byte{"chap.key": []byte(attachment.NewPrivateKey())}, nil
}

func prepare(ctx context.Context, s *certificate.Secrets, serverNames []string) error {
	if s.Authority == "" {
		return nil
	}
	if err := s.Once(ctx, s.Authority, corev1.SecretTypeTLS, certificate.Make); err != nil {
		return err
	}
	authority, err := s.Open(ctx)
	if err != nil {
		return err
	}
	return s.System(ctx, authority, serverNames)
}

// secrets returns the Secrets of the system's own certificates.
func (s *settings) secrets(kubernetes client.Client) *certificate.Secrets {
	return &certificate.Secrets{
		Client: kubernetes, Namespace: s.gateways.Namespace, Authority: s.gateways.Authority, Prefix: s.secretPrefix,
	}
}

// renewing renews the system's own certificates while this replica leads.
func (s *settings) renewing(mgr manager.Manager) error {
	if len(s.renew) == 0 || s.gateways.Authority == "" {
		return nil
	}
	secrets := s.secrets(mgr.GetClient())
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		ticker := time.NewTicker(renewEvery)
		defer ticker.Stop()
		for {
			authority, err := secrets.Open(ctx)
			if err == nil {
				err = secrets.System(ctx, authority, s.renew)
			}
			if err != nil && ctx.Err() == nil {
				slog.Error("certificates could not be looked after", "problem", err)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
		}
	}))
}
