package store

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

func someVolume(reason string) *model.Volume {
	at := time.Date(2026, 11, 24, 9, 0, 0, 123456789, time.UTC)
	v := &model.Volume{Meta: model.Meta{Name: "v", UID: "u", Generation: 2, CreateTime: at, Labels: map[string]string{"a": "b"}},
		Spec: model.VolumeSpec{Pool: "p", SizeBytes: 1 << 30, BlockSize: 512, ReclaimPolicy: model.ReclaimDelete,
			QoS: model.QoS{IOPS: 7}, Source: model.VolumeSource{Volume: "w"}},
		Status: model.VolumeStatus{Identity: model.DeviceIdentity{NAA: "3000000000000001", SerialNumber: "s"},
			MoveRequest: &model.MoveRequest{Gateway: 2, Since: at}, Move: &model.RequestedMove{To: 2, Trouble: "none"},
			Refusal: &model.Refusal{Reason: reason, Message: "<&>"}, MovedAt: at, CapacityBytes: 1 << 30, AllocatedBytes: -1}}
	ownership := model.Ownership{State: model.Unowned}
	next, err := ownership.Acquire(model.GatewayRef{Number: 2, Incarnation: "i"})
	if err != nil {
		panic(err)
	}
	next.Reason = reason
	v.Status.Ownership = ownership.Ordered(next, at)
	model.SetCondition(&v.Status.Conditions, model.Condition{Type: model.ConditionReady, Status: model.ConditionTrue, Reason: reason}, at)
	return v
}

func volumesAlone() *Collection[*model.Volume] {
	s := &Store{collections: map[model.Kind]collection{}, prefix: "/t/"}
	return newCollection(s, model.KindVolume, s.volumes())
}

// telling returns the object that a watch gets for a text, and whether the watch had to decode it.
func telling(t *testing.T, c *Collection[*model.Volume], text []byte, version int64) (object *model.Volume, decoded bool) {
	t.Helper()
	object, err := c.recent.decodeOnce("k", text, version, func() (*model.Volume, error) {
		decoded = true
		return c.decode("k", text, version)
	})
	if err != nil {
		t.Fatal(err)
	}
	return object, decoded
}

func TestAWatchSendsAWrittenObjectAsItWouldBeDecoded(t *testing.T) {
	c, stored := volumesAlone(), someVolume("Exported")
	text, err := c.encode(stored)
	if err != nil {
		t.Fatal(err)
	}
	c.recent.expect("k", text, c.copied(stored))
	got, decoded := telling(t, c, text, 5)
	want, err := c.decode("k", text, 5)
	if err != nil || decoded || !reflect.DeepEqual(got, want) {
		t.Errorf("decoded %v, %v:\n%+v\n%+v", decoded, err, got, want)
	}
	if got == stored || stored.Meta.Version != 0 {
		t.Error("the caller that stores it and the watch share one object, which gets its version twice")
	}
	if again, decoded := telling(t, c, text, 5); again != got || decoded {
		t.Error("the second watch gets another object")
	}
}

func TestARecentObjectIsReusedOnlyForTheExactStoredText(t *testing.T) {
	c, lost, won := volumesAlone(), someVolume("Exported"), someVolume("Unexported")
	text, err := c.encode(lost)
	other, err2 := c.encode(won)
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	c.recent.expect("k", text, c.copied(lost)) // and another writer came first
	if got, decoded := telling(t, c, other, 5); !decoded || got.Status.Ownership.Reason != "Unexported" || got.Meta.Version != 5 {
		t.Errorf("decoded %v: %+v", decoded, got)
	}
	if got, decoded := telling(t, c, text, 6); !decoded || got.Status.Ownership.Reason != "Exported" || got.Meta.Version != 6 {
		t.Errorf("decoded %v: %+v", decoded, got)
	}
	if got, decoded := telling(t, c, text, 7); !decoded || got.Meta.Version != 7 {
		t.Errorf("the same text of another version: decoded %v: %+v", decoded, got)
	}
}

func TestAWatchThatIsBehindLeavesTheOthersWhatTheyKnow(t *testing.T) {
	c := volumesAlone()
	text, err := c.encode(someVolume("Exported"))
	if err != nil {
		t.Fatal(err)
	}
	newest, _ := telling(t, c, text, 9)
	if old, decoded := telling(t, c, text, 3); !decoded || old.Meta.Version != 3 {
		t.Errorf("decoded %v: %+v", decoded, old)
	}
	if got, decoded := telling(t, c, text, 9); decoded || got != newest {
		t.Error("it is decoded again")
	}
	c.recent.forget("k")
	if len(c.recent.known) != 0 {
		t.Error("a deleted object is still known")
	}
}
