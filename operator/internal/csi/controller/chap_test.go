package controller

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// keyed returns a node that has announced a key.
func keyed(t *testing.T, name, initiator string) attachment.Node {
	t.Helper()
	key, err := attachment.ParsePrivateKey(attachment.NewPrivateKey())
	if err != nil {
		t.Fatal(err)
	}
	return attachment.Node{Name: name, Initiator: initiator, Key: attachment.EncodePublicKey(key.PublicKey())}
}

func (p *plane) admitted(t *testing.T, node attachment.Node, given attachment.CHAP) (*pb.Host, admission) {
	t.Helper()
	got, err := p.service().ensureHost(t.Context(), node, given)
	if err != nil {
		t.Fatal(err)
	}
	return p.hosts[got.host], got
}

func given() attachment.CHAP {
	return attachment.CHAP{Own: &attachment.Credentials{User: "class", Secret: "class-secret-123"}}
}

func refusedWith(t *testing.T, err error, code codes.Code, word string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), word) {
		t.Errorf("%v is not %v with %q", err, code, word)
	}
}

func TestEachNodeGetsACHAPSecretOfItsOwnByDefault(t *testing.T) {
	p := publishedPlane()
	secrets := map[string]bool{}
	for _, name := range []string{"n1", "n2"} {
		node := keyed(t, name, "iqn."+name)
		for range 2 { // a repeated publication changes nothing
			host, got := p.admitted(t, node, attachment.CHAP{})
			want, err := attachment.NodeCHAP(driverKey, node)
			chap := host.GetSpec().GetChap()
			if err != nil || host.GetSpec().GetAllowUnauthenticated() || chap.GetUsername() != "iqn."+name || chap.GetPassword() != want.Own.Secret {
				t.Errorf("node %s: %v, %v", name, host.GetSpec(), err)
			}
			if got.driverKey != attachment.EncodePublicKey(driverKey.PublicKey()) {
				t.Errorf("node %s does not get the order to derive its secret: %v", name, got)
			}
			secrets[chap.GetPassword()] = true
		}
	}
	if len(secrets) != 2 {
		t.Errorf("two nodes have the secrets %v", slices.Collect(maps.Keys(secrets)))
	}
}

func TestANodeWithoutKeyIsNotLetInUnauthenticated(t *testing.T) {
	p := publishedPlane()
	_, err := p.service().ensureHost(t.Context(), attachment.Node{Name: "n1", Initiator: "iqn.n1"}, attachment.CHAP{})
	refusedWith(t, err, codes.Unavailable, "no CHAP key")
	p.admitted(t, keyed(t, "n1", "iqn.n1"), attachment.CHAP{})
	_, err = p.service().ensureHost(t.Context(), attachment.Node{Name: "n1", Initiator: "iqn.n1"}, attachment.CHAP{})
	refusedWith(t, err, codes.Unavailable, "no CHAP key")
	if chap := p.hosts[hostName("n1")].GetSpec().GetChap(); chap == nil {
		t.Error("the Host has lost its secret")
	}
}

func TestAClassMayStillNameACHAPSecret(t *testing.T) {
	p := publishedPlane()
	for _, node := range []attachment.Node{{Name: "n1", Initiator: "iqn.n1"}, keyed(t, "n2", "iqn.n2")} {
		host, got := p.admitted(t, node, given())
		if host.GetSpec().GetChap().GetPassword() != "class-secret-123" || got.driverKey != "" {
			t.Errorf("node %s: %v, %v", node.Name, host.GetSpec(), got)
		}
		host, got = p.admitted(t, node, attachment.CHAP{}) // for a class without a Secret, the node's sessions keep their credentials
		if host.GetSpec().GetChap().GetPassword() != "class-secret-123" || got.driverKey != "" {
			t.Errorf("node %s, without the class's: %v, %v", node.Name, host.GetSpec(), got)
		}
	}
	node := keyed(t, "n3", "iqn.n3")
	p.admitted(t, node, attachment.CHAP{})
	_, err := p.service().ensureHost(t.Context(), node, given())
	refusedWith(t, err, codes.FailedPrecondition, "drain the node")
}

// iscsid could not restore a session without CHAP once the Host required it.
func TestAHostWithoutCHAPOfAnOlderReleaseStaysSoUntilItsLastVolumeLeaves(t *testing.T) {
	p, node := publishedPlane(), keyed(t, "n1", "iqn.n1")
	old := &pb.Host{Meta: &pb.ObjectMeta{Name: hostName("n1"), Uid: "1", Labels: map[string]string{labelMadeBy: madeBy}},
		Spec: &pb.HostSpec{Initiators: []string{"iqn.n1"}, AllowUnauthenticated: true}}
	p.hosts[hostName("n1")] = old
	p.target("csi.g.p.n1", ours, []string{hostName("n1")}, "v")
	host, got := p.admitted(t, node, attachment.CHAP{})
	if host.GetSpec().GetChap() != nil || !host.GetSpec().GetAllowUnauthenticated() || got.driverKey != "" {
		t.Errorf("while it has a volume: %v, %v", host.GetSpec(), got)
	}
	p.targets["csi.g.p.n1"].Spec.Hosts = nil
	host, got = p.admitted(t, node, attachment.CHAP{})
	if host.GetSpec().GetChap() == nil || host.GetSpec().GetAllowUnauthenticated() || got.driverKey == "" {
		t.Errorf("once it has none: %v, %v", host.GetSpec(), got)
	}
}

func TestANodeInstalledAgainGetsASecretThoughItsHostHadNone(t *testing.T) {
	p := publishedPlane()
	p.host("n1", "iqn.before")
	p.hosts[hostName("n1")].Meta.Uid, p.hosts[hostName("n1")].Spec.AllowUnauthenticated = "1", true
	host, got := p.admitted(t, keyed(t, "n1", "iqn.after"), attachment.CHAP{})
	if host.GetSpec().GetChap().GetUsername() != "iqn.after" || host.GetSpec().GetAllowUnauthenticated() || got.driverKey == "" {
		t.Errorf("%v, %v", host.GetSpec(), got)
	}
}

// If the node counted as another one because of its new id, the volume would be withdrawn from it while in use.
func TestANodeThatAnnouncesAKeyKeepsItsVolumes(t *testing.T) {
	p, node := publishedPlane(after), keyed(t, "n1", "iqn.after")
	p.target("csi.g.p.n1", ours, []string{hostName("n1")}, "v")
	p.host("n1", "iqn.after")
	id, err := node.ID()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.service().claim(t.Context(), "v", id, false); err != nil {
		t.Fatal(err)
	}
	if spec := p.targets["csi.g.p.n1"].GetSpec(); len(spec.GetLuns()) != 1 || len(spec.GetHosts()) != 1 {
		t.Errorf("the target has LUNs %v for hosts %v", spec.GetLuns(), spec.GetHosts())
	}
	if !slices.Equal(p.to("v"), []string{id}) {
		t.Errorf("published to %v: Kubernetes compares ids", p.to("v"))
	}
	p.unpublish(t, "v", after) // with the id that the attachment has recorded
	if len(p.to("v")) > 0 {
		t.Errorf("published to %v", p.to("v"))
	}
	p.gone(t, "csi.g.p.n1")
}
