package node

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"sluice.dev/sluice/operator/internal/csi/attachment"
)

// id returns the id that the node announces to kubelet.
func (m *machine) id(s *Service) attachment.Node {
	m.t.Helper()
	info, err := s.NodeGetInfo(m.t.Context(), &csi.NodeGetInfoRequest{})
	if err != nil {
		m.t.Fatal(err)
	}
	node, err := attachment.ParseNode(info.GetNodeId())
	if err != nil {
		m.t.Fatal(err)
	}
	return node
}

func registered(s *Service) int {
	answer := httptest.NewRecorder()
	s.Registered(answer, nil)
	return answer.Code
}

func TestANodeLogsInWithTheSecretThatTheControllerDerivesAndShowsItNowhere(t *testing.T) {
	m := newMachine(t)
	s := m.start()
	driver, err := attachment.ParsePrivateKey(attachment.NewPrivateKey())
	if err != nil {
		t.Fatal(err)
	}
	chap, err := attachment.NodeCHAP(driver, m.id(s))
	if err != nil {
		t.Fatal(err)
	}
	m.password = chap.Own.Secret // a discovery without it finds nothing
	v := m.volume(s, rawBlock())
	v.attachment.DriverKey = attachment.EncodePublicKey(driver.PublicKey())
	if err := v.stage(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, portal := range []string{one, two} {
		if record := m.records[portal]; record["node.session.auth.authmethod"] != "CHAP" ||
			record["node.session.auth.username"] != "iqn.node" || record["node.session.auth.password"] != chap.Own.Secret {
			t.Errorf("%s is logged in to by %v", portal, record)
		}
	}
	if shown := m.commands(chap.Own.Secret); len(shown) > 0 {
		t.Errorf("the secret is logged: %v", shown)
	}
	for _, value := range v.attachment.Context() {
		if strings.Contains(value, chap.Own.Secret) {
			t.Errorf("the secret is in the publish context: %v", v.attachment.Context())
		}
	}
	if err := v.unstage(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.nothingLeft()
}

func TestTheNodesKeyStaysAndIsRootsAlone(t *testing.T) {
	m := newMachine(t)
	first := m.id(m.start())
	if again := m.id(m.start()); first.Key == "" || again != first {
		t.Errorf("first %v, after a restart %v", first, again)
	}
	info, err := os.Stat(filepath.Join(m.root, "state", keyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
}

// A controller of the release before keys withdraws a volume from a node whose id has changed.
func TestANodeWithStagedVolumesOfBeforeKeysAnnouncesItsKeyWhenTheyAreGone(t *testing.T) {
	m := newMachine(t)
	s := m.start()
	v := m.volume(s, rawBlock())
	if err := v.stage(t.Context()); err != nil {
		t.Fatal(err)
	}
	if node := m.id(s); node.Key != "" || registered(s) != http.StatusOK {
		t.Errorf("while a volume is staged: %v, registered %d", node, registered(s))
	}
	if err := v.unstage(t.Context()); err != nil {
		t.Fatal(err)
	}
	if registered(s) != http.StatusServiceUnavailable {
		t.Error("the registrar is not restarted once no volume is staged")
	}
	if node := m.id(s); node.Key == "" || registered(s) != http.StatusOK {
		t.Errorf("afterwards: %v, registered %d", node, registered(s))
	}
}

func TestNamesThatLeaveNoRoomForAKeyAreAnnouncedWithoutOne(t *testing.T) {
	m := newMachine(t)
	s := m.start()
	m.put("InitiatorName=iqn."+strings.Repeat("x", attachment.MaxNamesWithKey), s.initiatorFile)
	if node := m.id(s); node.Key != "" {
		t.Errorf("announced: %v", node)
	}
}

func TestAStageWhoseKeyIsMissingSaysWhichFile(t *testing.T) {
	m := newMachine(t)
	v := m.volume(m.start(), rawBlock())
	driver, _ := attachment.ParsePrivateKey(attachment.NewPrivateKey())
	v.attachment.DriverKey = attachment.EncodePublicKey(driver.PublicKey())
	if err := v.stage(t.Context()); err == nil || !strings.Contains(err.Error(), keyFile) {
		t.Errorf("%v", err)
	}
}

func TestDiscoveryFallsBackWhereAPortalTakesNoCHAP(t *testing.T) {
	m := newMachine(t)
	m.instead["--discover"] = m.refuses
	v := m.volume(m.start(), rawBlock())
	v.secrets = chapSecrets()
	if err := v.stage(t.Context()); err != nil {
		t.Fatal(err)
	}
	if have := m.glob("class/iscsi_session/*"); len(have) != 2 {
		t.Errorf("sessions: %v", have)
	}
}
