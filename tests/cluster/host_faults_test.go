package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

// everyReplica returns the findings of each replica as `id kind/name severity: cause`, if all of them have the same.
func everyReplica(ctx context.Context, c *cluster.Cluster) ([]string, error) {
	var all []string
	for replica := range c.Options.Replicas {
		connection, err := client.Connect(client.Options{Endpoints: []string{c.Address(replica)}, TLS: c.Files("admin")})
		if err != nil {
			return nil, err
		}
		response, err := pb.NewFindingServiceClient(connection).ListFindings(ctx, &pb.ListFindingsRequest{EachObject: true})
		if err = errors.Join(err, connection.Close()); err != nil {
			return nil, err
		}
		var found []string
		for _, f := range response.GetFindings() {
			found = append(found, fmt.Sprintf("%s %s/%s %s: %s", f.GetId(), f.GetObject().GetKind(), f.GetObject().GetName(),
				strings.ToLower(strings.TrimPrefix(f.GetSeverity().String(), "FINDING_SEVERITY_")), f.GetCause()))
		}
		if replica > 0 && !slices.Equal(found, all) {
			return nil, fmt.Errorf("replica %d finds %v, another one %v", replica, found, all)
		}
		all = found
	}
	return all, nil
}

// missingFrom returns the texts that no line begins with and contains: `beginning … part`.
func missingFrom(lines []string, wanted map[string]string) error {
	for beginning, part := range wanted {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, beginning) && strings.Contains(line, part) }) {
			return fmt.Errorf("no %q with %q among:\n%s", beginning, part, strings.Join(lines, "\n"))
		}
	}
	return nil
}

// Hosts that are refused, that use a wrong secret, and that use one path only. Every replica has the findings, with the gateway, the
// target and the cause. They end after the fault does.
func TestWhatHostsMeetIsFoundByEveryReplicaAndEndsAfterwards(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 2})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	// A stranger is asked for CHAP as soon as any host has it.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // a report every 10 s, findings that begin or end after 30 s
	defer cancel()
	chap := filepath.Join(t.TempDir(), "host.yaml")
	if err := os.WriteFile(chap, fmt.Appendf(nil, "apiVersion: sluice.dev/v1\nkind: Host\nmeta: {name: host-2}\n"+
		"spec: {initiators: [\"%s2\"], chap: {username: u, password: %q}}\n", cluster.Initiator, secret), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Control(ctx, "apply", "-f", chap); err != nil {
		t.Fatal(err)
	}
	if err := netns.Until(ctx, func() error { // until the gateway has the target
		session, err := c.Login(ctx, 1, 0)
		if err == nil {
			t.Cleanup(session.Close)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := netns.Until(ctx, func() error { // until the gateway has the secret
		session, err := initiator.Login(ctx, initiator.Options{Portal: c.Portals(0)[0], Target: cluster.Target, Initiator: cluster.Initiator + "2",
			CHAP: &initiator.CHAP{User: "u", Secret: secret}})
		if err == nil {
			session.Close()
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	attempt := func(options initiator.Options) {
		options.Portal = c.Portals(0)[0]
		var refused *initiator.LoginError
		if session, err := initiator.Login(ctx, options); !errors.As(err, &refused) {
			t.Errorf("a login of %s: %v, %v", options.Initiator, session, err)
		}
	}
	attempt(initiator.Options{Target: "iqn.2026-11.dev.sluice:nowhere", Initiator: cluster.Initiator + "1"})
	attempt(initiator.Options{Target: cluster.Target, Initiator: cluster.Initiator + "2", CHAP: &initiator.CHAP{User: "u", Secret: "not that of the host"}})
	attempt(initiator.Options{Target: cluster.Target, Initiator: "iqn.2026-11.org.example:stranger"})
	gateway := cluster.GatewayName(0)
	refusals := map[string]string{
		"HostLoginRefused Host/host-1 warning: ":       "gateway " + gateway + ", target iqn.2026-11.dev.sluice:nowhere, ",
		"HostAuthenticationFailing Host/host-2 ":       "gateway " + gateway + ", target ",
		"HostAuthenticationFailing Gateway/" + gateway: "initiator iqn.2026-11.org.example:stranger, which no host has",
	}
	if err := netns.Until(ctx, func() error {
		found, err := everyReplica(ctx, c)
		return errors.Join(err, missingFrom(found, refusals))
	}); err != nil {
		t.Fatal(err)
	}
	if err := netns.Until(ctx, func() error {
		events, err := c.Control(ctx, "events")
		lines := strings.Split(string(events), "\n")
		for _, reason := range []string{"LoginRefused", "AuthenticationFailed", "HostLoginRefused", "HostAuthenticationFailing"} {
			if !slices.ContainsFunc(lines, func(line string) bool { return slices.Contains(strings.Fields(line), reason) }) {
				err = errors.Join(err, fmt.Errorf("no event %s in\n%s", reason, events))
			}
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	path := map[string]string{"HostPathMissing Host/host-1 ": "gateway " + cluster.GatewayName(1)}
	if err := netns.Until(ctx, func() error {
		found, err := everyReplica(ctx, c)
		if err == nil && missingFrom(found, refusals) == nil {
			err = errors.New("the refusals are still found")
		}
		return errors.Join(err, missingFrom(found, path))
	}); err != nil {
		t.Fatal(err)
	}
	session, err := c.Login(ctx, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	if err := netns.Until(ctx, func() error {
		found, err := everyReplica(ctx, c)
		if slices.ContainsFunc(found, func(line string) bool {
			return strings.HasPrefix(line, "Host") && !strings.HasPrefix(line, "HostUnauth")
		}) {
			err = errors.Join(err, fmt.Errorf("still found: %v", found))
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}
