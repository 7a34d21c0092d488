package main

import (
	"net"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"sluice.dev/sluice/operator/internal/certificate"
)

func TestGatewaysConnectToTheOperatorsControlPlaneWhereNoFlagNamesAnother(t *testing.T) {
	for _, given := range [][]string{nil, {"cp-1:7460", "cp-2:7460"}} {
		s := &settings{}
		s.controlPlane.Server, s.gateways.ControlPlane = "cp:7460", given
		s.complete()
		want := given
		if want == nil {
			want = []string{"cp:7460"}
		}
		if !slices.Equal(s.gateways.ControlPlane, want) {
			t.Errorf("--gateway-control-plane %q: gateways connect to %q", given, s.gateways.ControlPlane)
		}
	}
}

func TestWithoutAKubeconfigFlagTheEnvironmentNamesIt(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}}
	named, other := kubeconfigOf(t, secret), kubeconfigOf(t, secret)
	t.Setenv("KUBECONFIG", named)
	byDefault, err := kubernetes("")
	if err != nil {
		t.Fatal(err)
	}
	byName, err := kubernetes(named)
	if err != nil || byDefault.Host != byName.Host {
		t.Errorf("%v is not %v (%v)", byDefault, byName, err)
	}
	if byFlag, err := kubernetes(other); err != nil || byFlag.Host == byDefault.Host {
		t.Errorf("the flag does not decide: %v (%v)", byFlag, err)
	}
}

func TestPrepareMakesOnlySecretsThatHaveAName(t *testing.T) {
	for _, c := range []struct {
		prefix, authority, store, csi string
		want                          []string
	}{
		{"sluice", "", "", "", nil},
		{"sluice", "", "store", "", []string{"store"}},
		{"sluice", "", "", "csi", []string{"csi"}},
		{"sluice", "ca", "", "", []string{"ca", "sluice-admin-tls", "sluice-controlplane-tls", "sluice-csi-tls", "sluice-operator-tls"}},
		{"acme", "ca", "", "", []string{"acme-admin-tls", "acme-controlplane-tls", "acme-csi-tls", "acme-operator-tls", "ca"}},
	} {
		s := &certificate.Secrets{Namespace: "n", Prefix: c.prefix, Authority: c.authority, Client: fake.NewClientBuilder().Build()}
		err := makeKeys(t.Context(), s, c.store, c.csi)
		if err == nil {
			err = prepare(t.Context(), s, []string{"cp"})
		}
		var made corev1.SecretList
		if err == nil {
			err = s.Client.List(t.Context(), &made)
		}
		var names []string
		for _, secret := range made.Items {
			names = append(names, secret.Name)
		}
		slices.Sort(names)
		if err != nil || !slices.Equal(names, c.want) {
			t.Errorf("%+v: %q, %v", c, names, err)
		}
	}
}

// The port is in use, so an attempt to open it would fail.
func TestAnAddressOfZeroOpensNoPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	kubeconfig := kubeconfigOf(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}})
	for probes, fails := range map[string]bool{taken.Addr().String(): true, "0": false} {
		s := &settings{kubeconfig: kubeconfig, metrics: "0", probes: probes}
		s.gateways.Namespace = "n"
		if _, err := s.manager(); (err != nil) != fails {
			t.Errorf("--probes %s: %v", probes, err)
		}
	}
	for metrics, serves := range map[string]bool{taken.Addr().String(): true, "0": false} {
		server, err := metricsserver.NewServer(metricsserver.Options{BindAddress: metrics}, nil, nil)
		if err != nil || (server != nil) != serves {
			t.Errorf("--metrics %s: server %v, %v", metrics, server, err)
		}
	}
}

func TestFlagsNameTheLeaseAndTheSecretsOfTheSystemsCertificates(t *testing.T) {
	for _, c := range []struct {
		arguments     []string
		lease, prefix string
	}{
		{nil, "sluice-operator", "sluice"},
		{[]string{"--leader-lease-name=acme-operator", "--secret-prefix=acme"}, "acme-operator", "acme"},
	} {
		s := &settings{}
		if err := s.command().ParseFlags(c.arguments); err != nil {
			t.Fatal(err)
		}
		lease, prefix := s.options(runtime.NewScheme()).LeaderElectionID, s.secrets(nil).Prefix
		if lease != c.lease || prefix != c.prefix {
			t.Errorf("%q: the lease is %q, the prefix %q", c.arguments, lease, prefix)
		}
	}
}
