package main

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// members returns the LUNs and hosts of a target as text.
func (l *live) members(target string) string {
	l.t.Helper()
	got, err := l.Targets.Get(l.t.Context(), target)
	if err != nil {
		l.t.Fatal(err)
	}
	var luns []string
	for _, lun := range got.Spec.Luns {
		luns = append(luns, lunText(&pb.TargetLun{Id: lun.ID, Volume: lun.Volume, ReadOnly: lun.ReadOnly}))
	}
	return fmt.Sprintf("%v %v", luns, got.Spec.Hosts)
}

func TestLunsAndHostsAreAddedAndRemovedAndARepetitionChangesNothing(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	for _, name := range []string{"logs", "archive"} {
		l.must("volume", "create", name, "--pool", "nvme", "--size", "1Gi")
	}
	l.must("host", "create", "spare", "--initiator", "iqn.2026-11.org.example:spare", "--allow-unauthenticated")
	for _, c := range []struct{ command, out, members string }{
		{"add-lun shop 1=logs 0=orders --dry-run", "updated: LUN 1=logs added (dry run: nothing was changed)", "[0=orders] [web]"},
		{"add-lun shop 1=logs 0=orders 2=archive,ro", "updated: LUN 1=logs added, LUN 2=archive,ro added", "[0=orders 1=logs 2=archive,ro] [web]"},
		{"add-lun shop 1=logs", "unchanged", "[0=orders 1=logs 2=archive,ro] [web]"},
		{"add-lun shop 2=archive", "updated: LUN 2=archive,ro is 2=archive now", "[0=orders 1=logs 2=archive] [web]"},
		{"add-host shop web spare", "updated: host spare added", "[0=orders 1=logs 2=archive] [web spare]"},
		{"add-host shop spare", "unchanged", "[0=orders 1=logs 2=archive] [web spare]"},
		{"remove-host shop web other --dry-run", "updated: host web removed (dry run: nothing was changed)",
			"[0=orders 1=logs 2=archive] [web spare]"},
		{"remove-host shop web other", "updated: host web removed", "[0=orders 1=logs 2=archive] [spare]"},
		{"remove-host shop web", "unchanged", "[0=orders 1=logs 2=archive] [spare]"},
		{"remove-lun shop 1 7", "updated: LUN 1=logs removed", "[0=orders 2=archive] [spare]"},
		{"remove-lun shop 1", "unchanged", "[0=orders 2=archive] [spare]"},
	} {
		if out := l.must(append([]string{"target"}, strings.Fields(c.command)...)...); out != "target shop "+c.out+"\n" {
			t.Errorf("%s: %s", c.command, out)
		}
		if members := l.members("shop"); members != c.members {
			t.Errorf("after %s it has %s", c.command, members)
		}
	}
	if out := l.must("target", "add-host", "shop", "web", "-o", "json"); !strings.Contains(out, `"hosts": [`) {
		t.Errorf("as JSON: %s", out)
	}
}

func TestMembersThatCannotBeAddedAreRefusedWithTheRemedy(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	l.must("volume", "create", "logs", "--pool", "nvme", "--size", "1Gi")
	before := l.members("shop")
	for command, want := range map[string]struct {
		code int
		text string
	}{
		"add-lun shop 0=logs":   {exitNotNow, "LUN 0=logs: LUN 0 of target shop is volume orders; take another number"},
		"add-lun shop 1=orders": {exitNotNow, "LUN 1=orders: volume orders is LUN 0 of target shop already"},
		"add-lun shop 1=none":   {exitNotNow, "spec.luns[1].volume: there is no Volume named \"none\""},
		"add-lun shop 1":        {exitUsage, "LUN \"1\": write NUMBER=VOLUME"},
		"remove-lun shop logs":  {exitUsage, "LUN \"logs\": write its number"},
		"add-host shop none":    {exitNotNow, "spec.hosts[1]: there is no Host named \"none\""},
		"add-host none web":     {exitNotFound, "none"},
		"add-host shop":         {exitUsage, "requires at least 2 arg"},
	} {
		_, err := l.run(append([]string{"target"}, strings.Fields(command)...)...)
		if exitCode(err) != want.code || !strings.Contains(reported(err), want.text) {
			t.Errorf("%s: exit code %d: %s", command, exitCode(err), reported(err))
		}
	}
	if after := l.members("shop"); after != before {
		t.Errorf("it has %s, it had %s", after, before)
	}
}

func TestAChangeIsRepeatedWithTheNewestObjectAfterAConflict(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	l.must("host", "create", "spare", "--initiator", "iqn.2026-11.org.example:spare", "--allow-unauthenticated")
	connection, err := client.Connect(client.Options{Endpoints: []string{l.address}, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	attempts := 0
	removal := modification{fields: []string{"spec.hosts"}, apply: func(object proto.Message) ([]string, error) {
		if attempts++; attempts == 1 { // another writer is first
			l.must("target", "add-host", "shop", "spare")
		}
		spec := object.(*pb.Target).GetSpec()
		spec.Hosts = append([]string(nil), spec.GetHosts()[1:]...)
		return []string{"the first host"}, nil
	}}
	if _, _, err := kindNamed("target").modify(t.Context(), connection, "shop", removal, false); err != nil || attempts != 2 {
		t.Errorf("%d attempts: %v", attempts, err)
	}
	if members := l.members("shop"); members != "[0=orders] [spare]" {
		t.Errorf("it has %s", members)
	}
}

func TestAddingALunWaitsUntilGatewaysHaveAppliedItAndTheVolumeIsServed(t *testing.T) {
	l := start(t)
	l.working()
	l.must("volume", "create", "logs", "--pool", "nvme", "--size", "1Gi")
	r := l.begin(t.Context(), "target", "add-lun", "shop", "1=logs", "--wait")
	r.err.until(t, "gateway gw-1 has not applied it")
	modify(l, "shop", func(target *model.Target) {
		target.Status.Applied = map[uint32]string{1: target.Export(), 2: target.Export()}
	})
	r.err.until(t, "volume logs: no gateway serves it")
	modify(l, "logs", func(v *model.Volume) {
		v.Status.Ownership = model.Ownership{State: model.Owned, Epoch: 1, Owner: model.GatewayRef{Number: 1}}
	})
	if err := <-r.ended; err != nil || r.out.String() != "target shop updated: LUN 1=logs added\n" {
		t.Fatalf("%v\n%s", err, r.out)
	}
}

func TestWaitingForAMemberEndsWhenAnotherRequestRevertsTheChange(t *testing.T) {
	l := start(t)
	l.working()
	r := l.begin(t.Context(), "target", "remove-host", "shop", "web", "--wait")
	r.err.until(t, "has not applied it")
	l.must("target", "add-host", "shop", "web")
	r.replacedBy(t, "another request reverted the change", "sluicectl target describe shop")
}

func TestArgumentsOfTargetCommandsAreCompletedByTheServer(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	for arguments, wanted := range map[string]string{"add-lun ": "shop\n", "add-host ": "shop\n", "add-host shop ": "web\n", "add-lun shop ": ":4\n"} {
		words := append([]string{"__complete", "target"}, strings.Split(arguments, " ")...)
		if out := l.must(words...); !strings.HasPrefix(out, wanted) {
			t.Errorf("%s: %q", arguments, out)
		}
	}
}
