package cluster_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/proto/client"
	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/netns"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// memberSystem is a system whose servers join it.
type memberSystem struct {
	*cluster.JoiningServers
	t   *testing.T
	ctx context.Context
}

// foundSystem starts the first server, with its authority in the store.
func foundSystem(t *testing.T, address string) (*memberSystem, *cluster.JoiningServer) {
	t.Helper()
	program, _ := filepath.Abs("../../build/bin/sluice-controlplane") // the working directory exists
	if _, err := os.Stat(program); err != nil {
		t.Skip("not built: ", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	s := &memberSystem{&cluster.JoiningServers{Program: program, Directory: t.TempDir()}, t, ctx}
	first := s.Server("a", address)
	s.must(first.Found())
	s.ends(first)
	s.until(func() error { return s.serves(first) })
	request := &pb.ImportAuthorityRequest{Certificate: s.text("ca.crt"), PrivateKey: s.text("ca.key")}
	_, err := s.membership(first).ImportAuthority(ctx, request)
	s.must(err)
	return s, first
}

func (s *memberSystem) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *memberSystem) text(file string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Directory, "certs", file))
	s.must(err)
	return string(text)
}

func (s *memberSystem) until(condition func() error) {
	s.t.Helper()
	s.must(netns.Until(s.ctx, condition))
}

// ends ends a server's process with the test, and shows its log if the test fails.
func (s *memberSystem) ends(server *cluster.JoiningServer) {
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("%s: %s", server.Node, server.LogTail(20))
		}
		_ = server.Kill() // it may have ended
	})
}

func (s *memberSystem) dial(server *cluster.JoiningServer) grpc.ClientConnInterface {
	s.t.Helper()
	connection, err := server.Connect("admin")
	s.must(err)
	s.t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func (s *memberSystem) membership(server *cluster.JoiningServer) pb.MembershipServiceClient {
	s.t.Helper()
	return pb.NewMembershipServiceClient(s.dial(server))
}

// serves returns why a server does not answer a read.
func (s *memberSystem) serves(server *cluster.JoiningServer) error {
	ctx, cancel := context.WithTimeout(s.ctx, 2*time.Second)
	defer cancel()
	_, err := pb.NewFabricServiceClient(s.dial(server)).ListFabrics(ctx, &pb.ListFabricsRequest{})
	return err
}

func (s *memberSystem) create(server *cluster.JoiningServer, fabric string) {
	s.t.Helper()
	fabrics := pb.NewFabricServiceClient(s.dial(server))
	s.until(func() error {
		ctx, cancel := context.WithTimeout(s.ctx, 5*time.Second)
		defer cancel()
		_, err := fabrics.CreateFabric(ctx, &pb.CreateFabricRequest{Fabric: &pb.Fabric{Meta: &pb.ObjectMeta{Name: fabric}, Spec: &pb.FabricSpec{}}})
		if status.Code(err) == codes.AlreadyExists { // an attempt without an answer was stored
			return nil
		}
		return err
	})
}

// has returns which of the fabrics a server lacks.
func (s *memberSystem) has(server *cluster.JoiningServer, fabrics ...string) {
	s.t.Helper()
	for _, name := range fabrics {
		if _, err := pb.NewFabricServiceClient(s.dial(server)).GetFabric(s.ctx, &pb.GetFabricRequest{Name: name}); err != nil {
			s.t.Errorf("%s: %v", server.Node, err)
		}
	}
}

func (s *memberSystem) token(server *cluster.JoiningServer) string {
	s.t.Helper()
	made, err := s.membership(server).CreateJoinToken(s.ctx, &pb.CreateJoinTokenRequest{})
	s.must(err)
	return made.GetToken()
}

// joins makes a server a member. The members permit it some seconds after the last change.
func (s *memberSystem) joins(server, through *cluster.JoiningServer, token string, gateways ...string) {
	s.t.Helper()
	s.until(func() error {
		response, err := server.Join(s.ctx, token, through, gateways...)
		if err == nil && response.GetMember() == nil {
			s.t.Fatal(response.GetNoMemberReason())
		}
		return err
	})
	s.must(server.Start())
	s.ends(server)
	s.until(func() error { return s.serves(server) })
}

// voters waits until a server knows these voters and no other member, and reaches those that it should.
func (s *memberSystem) voters(server *cluster.JoiningServer, want string) {
	s.t.Helper()
	membership := s.membership(server)
	s.until(func() error {
		listed, err := membership.ListMembers(s.ctx, &pb.ListMembersRequest{})
		if err != nil {
			return err
		}
		var all []string
		for _, member := range listed.GetMembers() {
			text := member.GetNode()
			if member.GetRole() != pb.MemberRole_MEMBER_ROLE_VOTER {
				text += ":learner"
			}
			if !member.GetReachable() {
				text += ":unreachable"
			}
			if member.GetApiAddress() == "" {
				text += ":no API"
			}
			all = append(all, text)
		}
		if got := strings.Join(all, " "); got != want {
			return fmt.Errorf("members %q, not %q", got, want)
		}
		return nil
	})
}

// logs waits until a server's log has a text.
func (s *memberSystem) logs(server *cluster.JoiningServer, text string) {
	s.t.Helper()
	s.until(func() error {
		if log := server.LogTail(50); !strings.Contains(log, text) {
			return fmt.Errorf("%s does not say %q: %s", server.Node, text, log)
		}
		return nil
	})
}

// finds waits until a server has a finding with this cause.
func (s *memberSystem) finds(server *cluster.JoiningServer, id, cause string) {
	s.t.Helper()
	service := pb.NewFindingServiceClient(s.dial(server))
	s.until(func() error {
		found, err := service.ListFindings(s.ctx, &pb.ListFindingsRequest{})
		if err != nil {
			return err
		}
		for _, finding := range found.GetFindings() {
			if finding.GetId() == id && finding.GetCause() == cause {
				return nil
			}
		}
		return fmt.Errorf("the findings are %v", found.GetFindings())
	})
}

func refusedJoin(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %q", err, text)
	}
}

func TestThreeServersJoinByTokenAndTheAPIContinuesWithoutOneOfThem(t *testing.T) {
	s, a := foundSystem(t, "127.0.0.1")
	s.create(a, "before")
	token := s.token(a)
	b, c := s.Server("b", "127.0.0.2"), s.Server("c", "127.0.0.3")
	s.joins(b, a, token)
	s.joins(c, b, token) // through a server that has joined
	s.voters(c, "a b c")
	s.has(c, "before")

	fourth, err := s.Server("d", "127.0.0.4").Join(s.ctx, token, c, "d-1")
	if err != nil || fourth.GetMember() != nil || !strings.Contains(fourth.GetNoMemberReason(), "has 3 members") || len(fourth.GetGateways()) != 1 {
		t.Errorf("a fourth server gets %v, %v", fourth, err)
	}

	s.must(a.Kill())
	s.create(b, "without-a")
	s.has(c, "before", "without-a")
	s.voters(b, "a:unreachable b c")
	s.finds(b, "StoreMemberDown", "members of its store, etcd, do not answer: a")
	s.must(a.Start())
	s.until(func() error { return s.serves(a) })
	s.has(a, "before", "without-a")

	s.must(b.Signal(syscall.SIGTERM))
	<-b.Done()
	s.must(b.LoseData())
	s.must(b.Start())
	s.logs(b, "is empty, but the member b at 127.0.0.2:7467 has had data")
	s.until(func() error {
		_, err := s.membership(a).RemoveMember(s.ctx, &pb.RemoveMemberRequest{Node: "b"})
		return err
	})
	s.must(b.Start())
	s.logs(b, "has no member at 127.0.0.2:7467")
	s.joins(b, c, token)
	s.voters(a, "a b c")
	s.has(b, "before", "without-a")
}

// A power failure of all servers ends when two of them are back, in any order.
func TestAReplicaWithoutAMajorityIsNotReadyAndContinuesWhenThereIsOne(t *testing.T) {
	s, a := foundSystem(t, "127.0.0.1")
	token := s.token(a)
	b, c := s.Server("b", "127.0.0.2"), s.Server("c", "127.0.0.3")
	s.joins(b, a, token)
	s.joins(c, a, token)
	s.create(c, "before")
	s.must(a.Kill())
	s.must(b.Kill())
	s.until(func() error {
		if code, text := s.ready(c); code != http.StatusServiceUnavailable {
			return fmt.Errorf("/readyz without a majority: %d %s", code, text)
		}
		return nil
	})
	s.must(a.Start())
	s.create(c, "with-a-majority")
	if !c.Running() {
		t.Error("the replica ended meanwhile")
	}
	s.until(func() error { return s.serves(a) })

	for _, server := range []*cluster.JoiningServer{a, c} {
		s.must(server.Kill())
	}
	s.must(b.Start()) // it has missed the last changes, and waits for another one
	s.logs(b, "the majority of the members of etcd is not there")
	if code, text := s.ready(b); code != http.StatusServiceUnavailable || !strings.Contains(text, "not open yet") {
		t.Errorf("/readyz of a start that waits: %d %s", code, text)
	}
	s.must(b.Stop(15 * time.Second)) // a start that waits can be stopped
	s.must(b.Start())
	s.must(c.Start())
	s.until(func() error { return s.serves(b) })
	s.has(b, "before", "with-a-majority")
}

// ready returns what /readyz of a server answers.
func (s *memberSystem) ready(server *cluster.JoiningServer) (int, string) {
	s.t.Helper()
	answer, err := (&http.Client{Timeout: 5 * time.Second}).Get("http://" + server.Address + ":7461/readyz")
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	s.must(err)
	return answer.StatusCode, string(text)
}

func TestAMemberThatWasRemovedEndsAndDoesNotReturn(t *testing.T) {
	s, a := foundSystem(t, "127.0.0.1")
	b := s.Server("b", "127.0.0.2")
	s.joins(b, a, s.token(a))
	s.until(func() error {
		_, err := s.membership(a).RemoveMember(s.ctx, &pb.RemoveMemberRequest{Node: "b"})
		return err
	})
	<-b.Done()
	s.logs(b, "was removed from the cluster")
	s.create(a, "after")
	s.must(b.Start())
	<-b.Done()
	s.voters(a, "a")
	_, err := s.membership(a).RemoveMember(s.ctx, &pb.RemoveMemberRequest{Node: "a"})
	refusedJoin(t, err, "it is the only member")
}

func TestWhatIsNoValidJoinIsRefusedWithTheReason(t *testing.T) {
	s, a := foundSystem(t, "127.0.0.1")
	token := s.token(a)
	b := s.Server("b", "127.0.0.2")

	_, foreign := foundSystem(t, "127.0.0.5")
	_, err := b.Join(s.ctx, token, foreign)
	refusedJoin(t, err, "does not show the authority of the token")

	s.create(a, "red")
	_, err = pb.NewGatewayPoolServiceClient(s.dial(a)).CreateGatewayPool(s.ctx, &pb.CreateGatewayPoolRequest{GatewayPool: &pb.GatewayPool{
		Meta: &pb.ObjectMeta{Name: "default"}, Spec: &pb.GatewayPoolSpec{Fabrics: []string{"red"}}}})
	s.must(err)
	_, err = pb.NewGatewayServiceClient(s.dial(a)).CreateGateway(s.ctx, &pb.CreateGatewayRequest{Gateway: &pb.Gateway{
		Meta: &pb.ObjectMeta{Name: "b-1"}, Spec: &pb.GatewaySpec{GatewayPool: "default", Node: "victim", ForwardingAddress: "192.0.2.7:3261",
			Portals: []*pb.Portal{{Listen: "192.0.2.7:3260", Fabric: "red"}}}}})
	s.must(err)
	_, err = b.Join(s.ctx, token, a, "b-1")
	refusedJoin(t, err, "b-1 is a gateway of node victim")
	s.voters(a, "a") // a refused join admits no member

	s.joins(b, a, token, "b-2")
	pair, err := tls.LoadX509KeyPair(b.GatewayFiles("b-2").Certificate, b.GatewayFiles("b-2").Key)
	s.must(err)
	stolen := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}}}
	if answer, err := stolen.Get("https://" + a.PeerAddress() + "/members"); err == nil {
		_ = answer.Body.Close()
		t.Error("the peer port accepts the certificate of a gateway")
	}

	parsed, err := client.ParseJoinToken(token)
	s.must(err)
	_, err = s.membership(a).RevokeJoinToken(s.ctx, &pb.RevokeJoinTokenRequest{Id: parsed.ID})
	s.must(err)
	for range 5 {
		_, err = b.Join(s.ctx, token, a)
		refusedJoin(t, err, "the token is not valid")
	}
	_, err = b.Join(s.ctx, token, a)
	refusedJoin(t, err, "too many failed attempts")
	s.logs(a, "method=/sluice.v1.JoinService/Join object=b result=Unauthenticated")
}
