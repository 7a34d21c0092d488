package gateway

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
)

// A gateway does not start with a key that others can read.
func TestAGatewaysKeyIsReadableByItsOwnerAlone(t *testing.T) {
	g := &gateways{Options: Options{Namespace: "sluice-system", ControlPlane: []string{"controlplane:7460"}}}
	pod := g.render(&v1alpha1.Gateway{ObjectMeta: metav1.ObjectMeta{Name: "gateways-0"}}, nil)
	for _, volume := range pod.Spec.Volumes {
		if volume.Secret == nil {
			continue
		}
		if mode := volume.Secret.DefaultMode; mode == nil || *mode&0o077 != 0 {
			t.Errorf("volume %s: mode %v, want one for the owner alone", volume.Name, mode)
		}
		return
	}
	t.Error("no Secret is mounted")
}

// Whoever is killed before it has handed its volumes over makes a failover of what was to be a move (R7).
func TestAGatewaysPodHasTimeForAGracefulEnd(t *testing.T) {
	limits, err := os.ReadFile("../../../../gateway/src/base/limits.h")
	if err != nil {
		t.Fatal(err)
	}
	bound := regexp.MustCompile(`kShutdownBound = (\d+) \* kSecond;`).FindSubmatch(limits)
	if bound == nil {
		t.Fatal("gateway/src/base/limits.h says no kShutdownBound")
	}
	seconds, err := strconv.ParseInt(string(bound[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	// Half the bound for volumes (gateway/src/main.cc), all of it for sessions, 2 s for media, 3 s for Ceph; and as long again
	// as one of these for what has no bound, as the end of the process.
	needed := seconds/2 + seconds + 2 + 3 + 5
	grace := (&gateways{}).render(&v1alpha1.Gateway{}, nil).Spec.TerminationGracePeriodSeconds
	if grace == nil {
		t.Fatal("it says none")
	}
	if *grace < needed {
		t.Errorf("%d s, and a graceful end may take %d s", *grace, needed)
	}
}
