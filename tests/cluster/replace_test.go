package cluster_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
	"sluice.dev/sluice/tests/cluster"
)

// ctl runs sluicectl as an administrator at a server, and returns its standard output.
func (s *memberSystem) ctl(server *cluster.JoiningServer, arguments ...string) (string, error) {
	s.t.Helper()
	files := s.Files("admin")
	program := filepath.Join(filepath.Dir(s.Program), "sluicectl")
	command := exec.CommandContext(s.ctx, program, append([]string{"--server", server.Address + ":7460", "--tls-ca", files.CA,
		"--tls-cert", files.Certificate, "--tls-key", files.Key}, arguments...)...)
	command.Env = append(os.Environ(), "XDG_CONFIG_HOME="+s.Directory)
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, said.String())
	}
	return string(out), err
}

func TestADeadServerIsReplacedByOneThatTakesItsName(t *testing.T) {
	s, a := foundSystem(t, "127.0.0.4") // the certificates of all servers name 127.0.0.1
	if _, err := os.Stat(filepath.Join(filepath.Dir(s.Program), "sluicectl")); err != nil {
		t.Skip("not built: ", err)
	}
	token := s.token(a)
	b, c := s.Server("b", "127.0.0.2"), s.Server("c", "127.0.0.3")
	s.joins(b, a, token)
	s.joins(c, a, token)
	s.voters(a, "a b c")
	_, err := s.ctl(a, "node", "replace", "c")
	refusedJoin(t, err, "node c is alive: its control plane answers")

	s.must(c.Kill())
	s.voters(a, "a b c:unreachable")
	var out string
	s.until(func() error { // members of etcd must be connected for some seconds before one of them can be removed
		out, err = s.ctl(a, "node", "replace", "c")
		return err
	})
	s.voters(a, "a b")
	text, found := strings.CutPrefix(out[strings.LastIndex(out, "sluicectl node join "):], "sluicectl node join ")
	printed, address, _ := strings.Cut(strings.TrimSpace(text), "@")
	if !found || address != a.Address+":7468" && address != b.Address+":7468" {
		t.Fatalf("it printed %q", out)
	}

	former := s.copied(c.ServerFiles())
	s.must(c.LoseData()) // another server with the name and the address of the lost one
	s.create(a, "meanwhile")
	s.joins(c, b, printed)
	s.voters(b, "a b c")
	s.has(c, "meanwhile")
	refusedJoin(t, a.Renew(s.ctx, former), "a removed member does not get another certificate")
	for _, present := range []*cluster.JoiningServer{a, b, c} {
		s.must(a.Renew(s.ctx, present.ServerFiles()))
	}
}

// copied copies the files of a holder of a certificate.
func (s *memberSystem) copied(files client.Files) client.Files {
	s.t.Helper()
	to := s.t.TempDir()
	copies := client.Files{CA: files.CA, Certificate: filepath.Join(to, "copy.crt"), Key: filepath.Join(to, "copy.key")}
	for from, to := range map[string]string{files.Certificate: copies.Certificate, files.Key: copies.Key} {
		text, err := os.ReadFile(from)
		s.must(err)
		s.must(os.WriteFile(to, text, 0o600))
	}
	return copies
}

// The backup is older than the last change, and the store of the other members is lost or void.
func TestAStoreOfThreeMembersIsRestoredFromOneFileAndTheOthersJoinAgain(t *testing.T) {
	s, a := foundSystem(t, "127.0.0.4") // the certificates of all servers name 127.0.0.1
	token := s.token(a)
	b, c := s.Server("b", "127.0.0.2"), s.Server("c", "127.0.0.3")
	s.joins(b, a, token)
	s.joins(c, a, token)
	s.create(c, "in-the-backup")
	backup := filepath.Join(t.TempDir(), "store.db")
	if _, err := s.ctl(a, "backup", backup); err != nil {
		t.Fatal(err)
	}
	s.create(b, "after-the-backup")
	for _, server := range []*cluster.JoiningServer{a, b, c} {
		s.must(server.Kill())
	}
	s.must(a.Restore(backup))
	s.must(a.Start())
	s.until(func() error { return s.serves(a) })
	s.voters(a, "a")
	s.has(a, "in-the-backup")
	if _, err := pb.NewFabricServiceClient(s.dial(a)).GetFabric(s.ctx, &pb.GetFabricRequest{Name: "after-the-backup"}); !client.IsNotFound(err) {
		t.Errorf("a change after the backup: %v", err)
	}
	refusedJoin(t, a.Renew(s.ctx, b.ServerFiles()), "a removed member does not get another certificate")

	token = s.token(a)
	for _, server := range []*cluster.JoiningServer{b, c} {
		s.must(server.LoseData())
		s.joins(server, a, token)
	}
	s.voters(c, "a b c")
	s.has(c, "in-the-backup")
	s.create(b, "after-the-restore")
	s.has(a, "after-the-restore")
}
