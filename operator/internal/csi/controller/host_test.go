package controller

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// someonesHost has an initiator name of node n1, with credentials of another user.
func (p *plane) someonesHost(name, initiator string, labels map[string]string) {
	p.hosts[name] = &pb.Host{Meta: &pb.ObjectMeta{Name: name, Uid: name, Labels: labels}, Spec: &pb.HostSpec{Initiators: []string{initiator},
		Chap: &pb.ChapCredentials{Username: "own", Password: "own-secret-123"}}}
}

func keptAs(resource string) map[string]string {
	return map[string]string{labelUID: "1", labelResource: resource}
}

func TestAHostThatAResourceKeepsDoesNotStandForANode(t *testing.T) {
	for name, resource := range map[string]string{"tenant.web": "tenant/web", hostName("n1"): "csi/n1"} {
		p := publishedPlane(after)
		p.target("csi.g.p.n1", ours, nil) // for the node's earlier volumes
		p.someonesHost(name, "iqn.after", keptAs(resource))
		node := attachment.Node{Name: "n1", Initiator: "iqn.after"}
		_, _, err := p.service().admit(t.Context(), p.volumes["v"], node, attachment.CHAP{}, false, false)
		if status.Code(err) != codes.FailedPrecondition {
			t.Errorf("%s: %v", name, err)
		}
		for _, word := range []string{"Host resource " + resource, "delete", "sluicectl host create"} {
			if !strings.Contains(status.Convert(err).Message(), word) {
				t.Errorf("%s: %v does not say %q", name, err, word)
			}
		}
		p.gone(t, "csi.g.p.n1")
	}
}

func TestAHostThatPeopleMadeStandsForANode(t *testing.T) {
	p := publishedPlane(after)
	p.someonesHost("people", "iqn.after", nil)
	got, err := p.service().ensureHost(t.Context(), attachment.Node{Name: "n1", Initiator: "iqn.after"}, attachment.CHAP{})
	if err != nil || got != (admission{host: "people"}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAHostThatAResourceKeepsHoldsNoVolumeBack(t *testing.T) {
	for what, named := range map[string][]string{"named before that was refused": {"tenant.web"},
		"with a name that the node had": {hostName("n1")}} {
		p := publishedPlane(before)
		p.target("csi.g.p.n1", ours, named, "v")
		p.host("n1", "iqn.after")
		p.someonesHost("tenant.web", "iqn.before", keptAs("tenant/web"))
		p.unpublish(t, "v", after)
		p.gone(t, "csi.g.p.n1")
		if len(p.to("v")) > 0 || p.hosts["tenant.web"] == nil || len(p.hosts) > 1 {
			t.Errorf("%s: published to %v; Hosts %v", what, p.to("v"), p.hosts)
		}
	}
}
