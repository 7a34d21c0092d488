package desired_test

import (
	"slices"
	"testing"

	"sluice.dev/sluice/controlplane/internal/desired"
	"sluice.dev/sluice/controlplane/internal/desired/desiredtest"
	"sluice.dev/sluice/controlplane/internal/model"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// A gateway of release 880afa1 admits every host if the name is empty, so no message may contain a secret without a name.
func TestAGatewayReceivesEveryChapNameResolved(t *testing.T) {
	o := desiredtest.Cluster()
	web := *o.Hosts["web"]
	web.Spec.Initiators = []string{"iqn.2026-11.example:one", "iqn.2026-11.example:two"}
	web.Spec.Chap = &model.ChapCredentials{Password: model.NewSecret("a secret of web")}
	web.Spec.MutualChap = &model.ChapCredentials{Password: model.NewSecret("a secret of db.")}
	o.Put(&web)
	state := of(o, "gw-1")
	host := state[desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_HOST, ID: "host-uid"}].GetHost()
	if !slices.Equal(host.GetChapUsernames(), web.Spec.Initiators) || host.GetChap().GetUsername() != web.Spec.Initiators[0] {
		t.Errorf("CHAP names %v and %q", host.GetChapUsernames(), host.GetChap().GetUsername())
	}
	access := state[desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_TARGET, ID: desiredtest.IQN}].GetTarget().GetAccess()
	if len(access) != 1 || access[0].GetMutualChapUsername() != desiredtest.IQN {
		t.Errorf("access %v", access)
	}

	named := web
	named.Spec.Chap = &model.ChapCredentials{Username: "web", Password: model.NewSecret("a secret of web")}
	o.Put(&named)
	if host := of(o, "gw-1")[desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_HOST, ID: "host-uid"}].GetHost(); !slices.Equal(host.GetChapUsernames(), []string{"web", "web"}) {
		t.Errorf("CHAP names %v", host.GetChapUsernames())
	}
}
