package etcd_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"sluice.dev/sluice/controlplane/internal/etcd"
)

func TestEveryRequestIsTimedByWhatItWas(t *testing.T) {
	embedded, err := etcd.StartEmbedded(t.Context(), t.TempDir(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer embedded.Close()
	registry := prometheus.NewRegistry()
	etcd.Measure(embedded.Client, registry)
	done, err := embedded.Client.Txn(t.Context()).If(clientv3.Compare(clientv3.Version("a"), "=", 0)).
		Then(clientv3.OpPut("a", "1")).Else(clientv3.OpGet("a")).Commit()
	if err != nil || !done.Succeeded {
		t.Fatalf("%v, %v: a measured transaction is another one", done, err)
	}
	if _, err := embedded.Client.Get(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%v, %v", families, err)
	}
	counted := map[string]uint64{}
	for _, metric := range families[0].GetMetric() {
		counted[metric.GetLabel()[0].GetValue()] = metric.GetHistogram().GetSampleCount()
	}
	if counted["get"] != 1 || counted["txn"] != 1 {
		t.Errorf("counted %v", counted)
	}
}
