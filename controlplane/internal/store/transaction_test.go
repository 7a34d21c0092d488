package store_test

import (
	"fmt"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"

	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/etcd/etcdtest"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// limited is a store in an etcd with low limits.
func limited(t *testing.T, change func(*embed.Config)) *fixture {
	t.Helper()
	ring, err := keyring.Parse(keyring.GenerateKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := store.Open(t.Context(), etcdtest.Start(t, change), store.Options{Cluster: "small", Keyring: ring})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{Store: opened, t: t}
}

// large is a target that needs more operations and bytes than these limits allow.
func large(f *fixture) *model.Target {
	f.prerequisites()
	wide := target("wide")
	for i := range 60 {
		name := fmt.Sprintf("v-%d", i)
		must(f, f.Volumes, volume(name))
		wide.Spec.Luns = append(wide.Spec.Luns, model.TargetLun{ID: int32(i), Volume: name})
	}
	return wide
}

func TestAnEtcdThatAcceptsTooFewOperationsIsReportedWithTheFlagToSet(t *testing.T) {
	f := limited(t, func(config *embed.Config) { config.MaxTxnOps = 32 })
	err := f.Targets.Create(t.Context(), large(f), false)
	wantError[*store.EtcdLimitError](t, err, fmt.Sprintf("--max-txn-ops=%d", etcd.MaxTxnOps))
}

func TestAnEtcdThatAcceptsTooSmallRequestsIsReportedWithTheFlagToSet(t *testing.T) {
	f := limited(t, func(config *embed.Config) { config.MaxRequestBytes, config.MaxTxnOps = 8<<10, etcd.MaxTxnOps })
	err := f.Targets.Create(t.Context(), large(f), false)
	wantError[*store.EtcdLimitError](t, err, fmt.Sprintf("--max-request-bytes=%d", etcd.MaxRequestBytes))
}
