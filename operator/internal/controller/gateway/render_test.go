package gateway

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
)

// A gateway does not start with a key that other users can read.
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

// If a gateway is killed before it has handed over its volumes, a planned move becomes a failover (R7).
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
	// Half the bound for volumes (gateway/src/main.cc), all of it for sessions, 2 s for media, 3 s for Ceph, and 5 s for steps
	// without a bound, such as the end of the process.
	needed := seconds/2 + seconds + 2 + 3 + 5
	grace := (&gateways{}).render(&v1alpha1.Gateway{}, nil).Spec.TerminationGracePeriodSeconds
	if grace == nil {
		t.Fatal("it says none")
	}
	if *grace < needed {
		t.Errorf("%d s, and a graceful end may take %d s", *grace, needed)
	}
}

func rendered(template v1alpha1.GatewayTemplate) *corev1.Pod {
	g := &gateways{Options: Options{Namespace: "sluice-system", SeccompProfile: "sluice/gateway.json"}}
	return g.render(&v1alpha1.Gateway{Spec: v1alpha1.GatewaySpec{Template: template}}, nil)
}

func TestAGatewayRunsAsRootOnlyWhereItsFilesAreTheNodes(t *testing.T) {
	for what, c := range map[string]struct {
		template v1alpha1.GatewayTemplate
		user     int64
	}{
		"Ceph only":                        {v1alpha1.GatewayTemplate{}, 65532},
		"a user that the pool names":       {v1alpha1.GatewayTemplate{RunAsUser: new(int64(1000))}, 1000},
		"directories":                      {v1alpha1.GatewayTemplate{LocalDirectories: []string{"/srv"}}, 0},
		"directories of a user":            {v1alpha1.GatewayTemplate{LocalDirectories: []string{"/srv"}, RunAsUser: new(int64(1000))}, 1000},
		"block devices, whatever is named": {v1alpha1.GatewayTemplate{BlockDevices: true, RunAsUser: new(int64(1000))}, 0},
	} {
		pod := rendered(c.template)
		context := pod.Spec.Containers[0].SecurityContext
		if c.user == 0 {
			if context.RunAsNonRoot != nil || context.RunAsUser != nil || pod.Spec.SecurityContext != nil {
				t.Errorf("%s: %v, pod %v", what, context, pod.Spec.SecurityContext)
			}
			continue
		}
		if context.RunAsNonRoot == nil || !*context.RunAsNonRoot || context.RunAsUser == nil || *context.RunAsUser != c.user || len(context.Capabilities.Add) > 0 {
			t.Errorf("%s: %v", what, context)
		}
		// The kubelet makes the key (0440) and the state directory accessible to the group.
		if pod.Spec.SecurityContext == nil || *pod.Spec.SecurityContext.FSGroup != c.user || *context.RunAsGroup != c.user {
			t.Errorf("%s: group of the pod: %v", what, pod.Spec.SecurityContext)
		}
	}
}

func TestAGatewayHasAFilterAReadOnlyRootAndNoCapabilityThatItNeedsNot(t *testing.T) {
	own := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: new("own.json")}
	for what, c := range map[string]struct {
		template v1alpha1.GatewayTemplate
		profile  string
	}{
		"Ceph only": {v1alpha1.GatewayTemplate{}, "sluice/gateway.json"}, "directories": {v1alpha1.GatewayTemplate{
			LocalDirectories: []string{"/srv"}}, "sluice/gateway.json"},
		"block devices":        {v1alpha1.GatewayTemplate{BlockDevices: true}, "sluice/gateway.json"},
		"a profile of its own": {v1alpha1.GatewayTemplate{SeccompProfile: own}, "own.json"},
	} {
		context := rendered(c.template).Spec.Containers[0].SecurityContext
		if context.SeccompProfile.LocalhostProfile == nil || *context.SeccompProfile.LocalhostProfile != c.profile {
			t.Errorf("%s: filter %v", what, context.SeccompProfile)
		}
		if context.ReadOnlyRootFilesystem == nil || !*context.ReadOnlyRootFilesystem {
			t.Errorf("%s: the root file system can be written", what)
		}
		if !c.template.BlockDevices && (len(context.Capabilities.Drop) != 1 || context.Capabilities.Drop[0] != "ALL" || *context.AllowPrivilegeEscalation) {
			t.Errorf("%s: %v", what, context)
		}
	}
}

// The digest decides whether a pod is replaced: an upgrade of the operator alone must replace none.
func TestAFieldThatIsNotSetLeavesTheDigestAsItWas(t *testing.T) {
	if digest := Digest(&v1alpha1.GatewaySpec{}); digest != "294db2bd98d7cb03" {
		t.Errorf("the digest of an empty spec is %s", digest)
	}
}

func TestWithoutAProfileGatewaysHaveNoFilterOfSystemCalls(t *testing.T) {
	g := &gateways{Options: Options{Namespace: "sluice-system"}}
	pod := g.render(&v1alpha1.Gateway{}, nil)
	if profile := pod.Spec.Containers[0].SecurityContext.SeccompProfile; profile == nil ||
		profile.Type != corev1.SeccompProfileTypeUnconfined {
		t.Errorf("filter: %+v", profile)
	}
}

func TestAGatewayWithoutANodeMayRunOnAnyNode(t *testing.T) {
	g := &gateways{Options: Options{Namespace: "sluice-system"}}
	pod := g.render(&v1alpha1.Gateway{}, nil)
	if affinity := pod.Spec.Affinity; pod.Spec.NodeName != "" || affinity != nil && affinity.NodeAffinity != nil {
		t.Errorf("affinity: %+v", affinity)
	}
}
