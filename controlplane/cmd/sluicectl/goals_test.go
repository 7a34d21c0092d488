package main

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func volumeWith(state pb.OwnershipState, owner uint32, capacity int64) *pb.Volume {
	return &pb.Volume{Spec: &pb.VolumeSpec{SizeBytes: 2 << 30},
		Status: &pb.VolumeStatus{Ownership: state, OwnerGateway: owner, CapacityBytes: capacity}}
}

func poolThatIs(ready pb.ConditionStatus) *pb.StoragePool {
	return &pb.StoragePool{Status: &pb.StoragePoolStatus{
		Conditions: []*pb.Condition{{Type: "Degraded"}, {Type: "Ready", Status: ready}}}}
}

func TestAGoalIsReachedOnlyByWhatWasAskedFor(t *testing.T) {
	owned, moving := pb.OwnershipState_OWNERSHIP_STATE_OWNED, pb.OwnershipState_OWNERSHIP_STATE_MOVING
	unowned, opening := pb.OwnershipState_OWNERSHIP_STATE_UNOWNED, pb.OwnershipState_OWNERSHIP_STATE_OPENING
	before := volumeWith(owned, 1, 1).GetStatus()
	gateway := func(health pb.GatewayHealth) *pb.Gateway {
		return &pb.Gateway{Status: &pb.GatewayStatus{Health: health}}
	}
	for name, c := range map[string]struct {
		missing func(proto.Message) string
		object  proto.Message
		reached bool
	}{
		"made, without owner":         {unmadeVolume, volumeWith(unowned, 0, 1), true},
		"made and owned":              {unmadeVolume, volumeWith(owned, 1, 1), true},
		"mapped but opening":          {unmadeVolume, volumeWith(opening, 1, 1), false},
		"without capacity":            {unmadeVolume, volumeWith(owned, 1, 0), false},
		"grown":                       {ungrown(2 << 30), volumeWith(owned, 1, 2<<30), true},
		"still smaller":               {ungrown(2 << 30), volumeWith(owned, 1, 1<<30), false},
		"moved anywhere":              {unmoved(0, before), volumeWith(owned, 2, 1), true},
		"not moved yet":               {unmoved(0, before), volumeWith(owned, 1, 1), false},
		"moved to another than asked": {unmoved(3, before), volumeWith(owned, 2, 1), false},
		"moved to the one asked":      {unmoved(3, before), volumeWith(owned, 3, 1), true},
		"moving":                      {unmoved(0, before), volumeWith(moving, 1, 1), false},
		"opening at the one asked":    {unmoved(3, before), volumeWith(opening, 3, 1), false},
		"drained":                     {undrained, gateway(pb.GatewayHealth_GATEWAY_HEALTH_DRAINED), true},
		"draining":                    {undrained, gateway(pb.GatewayHealth_GATEWAY_HEALTH_DRAINING), false},
		"ready again":                 {unmadeGateway, gateway(pb.GatewayHealth_GATEWAY_HEALTH_READY), true},
		"drained, not undrained":      {unmadeGateway, gateway(pb.GatewayHealth_GATEWAY_HEALTH_DRAINED), false},
		"all paths":                   {unmadeTarget, appliedOn(2, 1, 2), true},
		"all paths, not applied yet":  {unmadeTarget, targetOn(2, 1, 2), false},
		"one path of two":             {unmadeTarget, targetOn(2, 1), false},
		"taken":                       {unmadeSnapshot, &pb.Snapshot{Status: &pb.SnapshotStatus{Ready: true}}, true},
		"not taken":                   {unmadeSnapshot, &pb.Snapshot{}, false},
		"a pool that gateways reach":  {unmadePool, poolThatIs(pb.ConditionStatus_CONDITION_STATUS_TRUE), true},
		"a pool with a problem":       {unmadePool, poolThatIs(pb.ConditionStatus_CONDITION_STATUS_FALSE), false},
		"rolled back":                 {unrolled, volumeWith(unowned, 0, 1), true},
		"being rolled back":           {unrolled, &pb.Volume{Status: &pb.VolumeStatus{RollingBack: true}}, false},
		"a rollback that failed": {unrolled, &pb.Volume{Status: &pb.VolumeStatus{Conditions: []*pb.Condition{{Type: "Progressing",
			Reason: "RollBackFailed"}}}}, false},
		"a pool that no gateway has reached": {unmadePool, &pb.StoragePool{}, false},
		"deleted and gone":                   {undeleted, nil, true},
		"still there":                        {undeleted, &pb.Volume{}, false},
		"gone, but wanted":                   {ungrown(2 << 30), nil, false},
	} {
		if got := c.missing(c.object); (got == "") != c.reached {
			t.Errorf("%s: missing %q", name, got)
		}
	}
}

func TestAMoveIsReplacedOnlyByOneThatWantsSomethingElse(t *testing.T) {
	volume := func(owner uint32, move *pb.RequestedMove) *pb.Volume {
		return &pb.Volume{Status: &pb.VolumeStatus{OwnerGateway: owner, RequestedMove: move}}
	}
	to := func(gateway uint32, second int64) *pb.RequestedMove {
		return &pb.RequestedMove{Gateway: gateway, RequestTime: &timestamppb.Timestamp{Seconds: second}}
	}
	for name, c := range map[string]struct {
		asked, now *pb.RequestedMove
		output     string
	}{
		"no reason, of an older control plane":         {nil, to(3, 2), ""},
		"the same":                                     {to(2, 1), to(2, 1), ""},
		"the same, whose gateway was chosen":           {to(0, 1), to(3, 1), ""},
		"another one to the same gateway":              {to(2, 1), to(2, 2), ""},
		"another one to another gateway":               {to(2, 1), to(3, 2), "to gateway number 3"},
		"another one to any gateway":                   {to(2, 1), to(0, 2), "to the best gateway"},
		"to one gateway, where any but this is wanted": {to(0, 1), to(3, 2), ""},
		"back, where any but this is wanted":           {to(0, 1), to(1, 2), "to gateway number 1"},
		"over, and the reason is not there yet":        {to(2, 1), nil, ""},
	} {
		if output := movedAgain(volume(1, c.asked), volume(1, c.now)); (output == "") != (c.output == "") || !strings.Contains(output, c.output) {
			t.Errorf("%s: %q", name, output)
		}
	}
	elsewhere := volume(3, nil)
	elsewhere.Status.Ownership = pb.OwnershipState_OWNERSHIP_STATE_OWNED
	if output := movedAgain(volume(1, to(2, 1)), elsewhere); !strings.Contains(output, "no move is asked for any more") {
		t.Errorf("the move of another request is over: %q", output)
	}
}

func TestAnotherObjectOfTheNameIsNotTheOneThatWasWaitedFor(t *testing.T) {
	from := &pb.Volume{Meta: &pb.ObjectMeta{Name: "orders", Uid: "a", ResourceVersion: 7}}
	w := newWaiting([]goal{{kind: volumeKind, from: from, missing: undeleted}})
	if w.after != 7 {
		t.Errorf("watches from %d: changes are missed or shown twice", w.after)
	}
	w.apply(change{kind: pb.ChangeType_CHANGE_TYPE_PUT, object: &pb.Volume{Meta: &pb.ObjectMeta{Name: "orders", Uid: "b"}}})
	if len(w.missing()) != 0 {
		t.Errorf("%v", w.missing())
	}
}

func TestAResetWithoutTheObjectMeansThatItIsGone(t *testing.T) {
	from := &pb.Volume{Meta: &pb.ObjectMeta{Name: "orders", Uid: "a"}}
	w := newWaiting([]goal{{kind: volumeKind, from: from, missing: undeleted}})
	w.apply(change{kind: pb.ChangeType_CHANGE_TYPE_RESET})
	w.apply(change{kind: pb.ChangeType_CHANGE_TYPE_PUT, object: &pb.Volume{Meta: &pb.ObjectMeta{Name: "other"}}})
	if len(w.missing()) != 1 {
		t.Error("it ends before everything is shown")
	}
	w.apply(change{kind: pb.ChangeType_CHANGE_TYPE_BOOKMARK, version: 9})
	if len(w.missing()) != 0 || w.after != 9 {
		t.Errorf("%v, %d", w.missing(), w.after)
	}
}

func TestMissingGoalsAreShownWithTheirConditions(t *testing.T) {
	volume := volumeWith(pb.OwnershipState_OWNERSHIP_STATE_UNOWNED, 0, 0)
	volume.Meta = &pb.ObjectMeta{Name: "orders"}
	volume.Status.Conditions = []*pb.Condition{
		{Type: "Ready", Status: pb.ConditionStatus_CONDITION_STATUS_FALSE, Reason: "NoSpace", Message: "the pool is full"},
		{Type: "Progressing", Status: pb.ConditionStatus_CONDITION_STATUS_FALSE, Reason: "Idle"},
	}
	w := newWaiting([]goal{{kind: volumeKind, from: volume, missing: unmadeVolume}})
	if got := strings.Join(w.missing(), ""); !strings.HasSuffix(got, "(NoSpace: the pool is full)") {
		t.Error(got)
	}
}

func TestADumpOmitsSecretFieldsAtEveryDepth(t *testing.T) {
	host := &pb.Host{Spec: &pb.HostSpec{Chap: &pb.ChapCredentials{Username: "u", Password: "p1"},
		MutualChap: &pb.ChapCredentials{Password: "p2"}}}
	pools := &pb.ListStoragePoolsResponse{StoragePools: []*pb.StoragePool{{Spec: &pb.StoragePoolSpec{
		Kind: &pb.StoragePoolSpec_Rbd{Rbd: &pb.RbdPool{User: "sluice", Key: "k"}}}}}}
	withoutSecrets(host.ProtoReflect())
	withoutSecrets(pools.ProtoReflect())
	if host.GetSpec().GetChap().GetPassword() != "" || host.GetSpec().GetMutualChap().GetPassword() != "" ||
		host.GetSpec().GetChap().GetUsername() != "u" {
		t.Errorf("%v", host.GetSpec().GetChap().GetUsername())
	}
	if rbd := pools.GetStoragePools()[0].GetSpec().GetRbd(); rbd.GetKey() != "" || rbd.GetUser() != "sluice" {
		t.Errorf("%v", rbd.GetUser())
	}
}

func TestManyPartsPrintALineForEachTenth(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out)
	p.describe("volumes to go")
	for done := range int64(1001) {
		p.count(done, 1000)
	}
	p.end()
	if lines := strings.Count(out.String(), "\n"); lines < 10 || lines > 13 {
		t.Errorf("%d lines:\n%s", lines, out.String())
	}
}

// appliedOn returns a target whose gateways have applied it.
func appliedOn(paths int32, gateways ...uint32) *pb.Target {
	target := targetOn(paths, gateways...)
	for _, path := range target.GetStatus().GetPaths() {
		path.Applied = true
	}
	return target
}

func targetOn(paths int32, gateways ...uint32) *pb.Target {
	target := &pb.Target{Meta: &pb.ObjectMeta{Name: "shop"}, Spec: &pb.TargetSpec{Paths: paths}, Status: &pb.TargetStatus{}}
	for _, number := range gateways {
		target.Status.Paths = append(target.Status.Paths, &pb.TargetPath{TargetPortGroup: number})
	}
	return target
}
