package test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
)

func leader(t *testing.T) (string, error) {
	var lease coordinationv1.Lease
	err := env.client.Get(t.Context(), types.NamespacedName{Namespace: systemNamespace, Name: "sluice-operator"}, &lease)
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", fmt.Errorf("no replica leads: %v", err)
	}
	return *lease.Spec.HolderIdentity, nil
}

func TestASecondOperatorWaitsAndTakesOverWhenTheFirstStops(t *testing.T) {
	var first string
	eventually(t, func() (err error) { first, err = leader(t); return err })
	metrics := freeAddress()
	second, err := env.runOperator("operator-2", metrics)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return scraped(t, metrics, `leader_election_master_status{name="sluice-operator"} 0`) })
	env.operator.stop()
	env.operator, env.metrics = second, metrics
	eventually(t, func() error {
		now, err := leader(t)
		if err == nil && now == first {
			err = fmt.Errorf("%s still leads", first)
		}
		return err
	})
	create(t, storagePool(t, "second"))
	r := volume(t, "second", `{pool: second, size: 1Gi}`)
	create(t, r)
	delivered(t, r)
}

func TestMetricsCountReconciliationsAndCalls(t *testing.T) {
	create(t, storagePool(t, "metrics"))
	r := volume(t, "metrics", `{pool: metrics, size: 1Gi}`)
	create(t, r)
	delivered(t, r)
	eventually(t, func() error {
		return scraped(t, env.metrics, `controller_runtime_reconcile_total{controller="volume"`,
			`sluice_operator_control_plane_call_duration_seconds_count{code="OK",method="CreateVolume"}`,
			`sluice_operator_control_plane_watch_connected{kind="Volume"} 1`)
	})
}

func scraped(t *testing.T, address string, wanted ...string) error {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	for _, line := range wanted {
		if !strings.Contains(string(text), line) {
			return fmt.Errorf("metrics at %s lack %s", address, line)
		}
	}
	return nil
}
