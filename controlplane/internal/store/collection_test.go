package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
)

func TestAnObjectIsReadBackAsItWasCreated(t *testing.T) {
	f := open(t)
	f.prerequisites()
	made := volume("orders")
	must(f, f.Volumes, made)
	got, err := f.Volumes.Get(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	if got.Meta.UID != made.Meta.UID || got.Meta.Version != made.Meta.Version || got.Meta.Generation != 1 ||
		!got.Meta.CreateTime.Equal(f.clock.now()) || got.Spec != made.Spec || got.Spec.BlockSize != 512 ||
		got.Status.Identity != made.Status.Identity || len(got.Status.Identity.NAA) != 16 {
		t.Fatalf("got %+v, made %+v", got, made)
	}
}

func TestASecondObjectOfAName(t *testing.T) {
	f := open(t)
	f.prerequisites()
	must(f, f.Volumes, volume("orders"))
	wantError[*store.ExistsError](t, f.Volumes.Create(t.Context(), volume("orders"), false), "orders")
}

func TestAnUpdateFromAnOldVersionChangesNothing(t *testing.T) {
	f := open(t)
	f.prerequisites()
	must(f, f.Volumes, volume("orders"))
	first, _ := f.Volumes.Get(t.Context(), "orders")
	second, _ := f.Volumes.Get(t.Context(), "orders")
	first.Spec.SizeBytes = 2 << 30
	if err := f.Volumes.Update(t.Context(), first, false); err != nil {
		t.Fatal(err)
	}
	second.Spec.SizeBytes = 3 << 30
	wantError[*store.ConflictError](t, f.Volumes.Update(t.Context(), second, false))
	got, _ := f.Volumes.Get(t.Context(), "orders")
	if got.Spec.SizeBytes != 2<<30 || got.Meta.Generation != 2 {
		t.Fatalf("size %d, generation %d", got.Spec.SizeBytes, got.Meta.Generation)
	}
}

func TestConcurrentModificationsAreNeverLost(t *testing.T) {
	f := open(t)
	f.prerequisites()
	must(f, f.Volumes, volume("orders"))
	const writers, each = 4, 10
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for done := 0; done < each; {
				_, err := storetest.Modify(t.Context(), f.term(), "orders", func(v *model.Volume) (bool, error) {
					v.Status.CapacityBytes++
					return true, nil
				})
				if err == nil {
					done++
				} else if !errors.Is(err, store.ErrBusy) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if got, _ := f.Volumes.Get(t.Context(), "orders"); got.Status.CapacityBytes != writers*each {
		t.Fatalf("%d of %d modifications are there", got.Status.CapacityBytes, writers*each)
	}
}

func TestAnUpdateCannotTouchStatusOrIdentity(t *testing.T) {
	f := open(t)
	f.prerequisites()
	made := volume("orders")
	must(f, f.Volumes, made)
	forged := volume("orders")
	forged.Meta.UID = model.NewUID()
	forged.Status.Ownership.Epoch = 99
	forged.Status.Identity.NAA = "3000000000000000"
	if err := f.Volumes.Update(t.Context(), forged, false); err != nil {
		t.Fatal(err)
	}
	got, _ := f.Volumes.Get(t.Context(), "orders")
	if got.Meta.UID != made.Meta.UID || got.Status.Ownership.Epoch != 0 || got.Status.Identity != made.Status.Identity {
		t.Fatalf("forged: %+v", got)
	}
}

func TestAVolumeOnlyGrowsAndItsImmutableFieldsStay(t *testing.T) {
	f := open(t)
	f.prerequisites()
	must(f, f.Volumes, volume("orders"))
	changes := map[string]func(*model.Volume){
		"spec.sizeBytes": func(v *model.Volume) { v.Spec.SizeBytes = 1 << 29 },
		"spec.blockSize": func(v *model.Volume) { v.Spec.BlockSize = 4096 },
		"spec.pool":      func(v *model.Volume) { v.Spec.Pool = "other" },
	}
	for field, change := range changes {
		changed := volume("orders")
		change(changed)
		wantError[*model.InvalidError](t, f.Volumes.Update(t.Context(), changed, false), field)
	}
	grown := volume("orders")
	grown.Spec.SizeBytes = 1 << 31
	if err := f.Volumes.Update(t.Context(), grown, false); err != nil {
		t.Errorf("a volume was not grown: %v", err)
	}
}

func TestAnObjectCannotReferToOneThatIsNotThere(t *testing.T) {
	f := open(t)
	f.prerequisites()
	lost := volume("orders")
	lost.Spec.Pool = "elsewhere"
	wantError[*model.PreconditionError](t, f.Volumes.Create(t.Context(), lost, false), "spec.pool", "elsewhere")
	nobody := target("db", model.TargetLun{ID: 0, Volume: "orders"})
	wantError[*model.PreconditionError](t, f.Targets.Create(t.Context(), nobody, false), "spec.luns[0].volume", "orders")
}

func TestAnObjectInUseCannotBeDeletedAndSaysByWhom(t *testing.T) {
	f := open(t)
	f.prerequisites()
	must(f, f.Volumes, volume("orders"))
	must(f, f.Targets, target("db", model.TargetLun{ID: 0, Volume: "orders"}))
	_, err := f.Volumes.Delete(t.Context(), "orders", store.DeleteOptions{})
	wantError[*model.PreconditionError](t, err, "Target db")

	bare := target("db")
	if err := f.Targets.Update(t.Context(), bare, false); err != nil {
		t.Fatal(err)
	}
	gone, err := f.Volumes.Delete(t.Context(), "orders", store.DeleteOptions{})
	if err != nil || !gone.Meta.Deleting() {
		t.Fatalf("after unmapping: %v, %v", gone, err)
	}
	again := target("db", model.TargetLun{ID: 1, Volume: "orders"})
	wantError[*model.PreconditionError](t, f.Targets.Update(t.Context(), again, false), "being deleted")
	if err := f.term().Remove(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	_, err = f.Volumes.Get(t.Context(), "orders")
	wantError[*store.NotFoundError](t, err)
}

func TestNothingOfARemovedObjectStays(t *testing.T) {
	f := open(t)
	f.prerequisites()
	f.term() // its key exists while the test leads
	before := f.raw()
	must(f, f.Volumes, volume("orders"))
	must(f, f.Hosts, host("web", "a long secret"))
	if _, err := f.Hosts.Delete(t.Context(), "web", store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	gone, err := f.Volumes.Delete(t.Context(), "orders", store.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.term().Remove(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if after := f.raw(); after != before {
		t.Fatalf("before:\n%safter:\n%s", before, after)
	}
}

func TestADeletionMeantForAnotherObjectOfTheNameIsRefused(t *testing.T) {
	f := open(t)
	f.prerequisites()
	must(f, f.Volumes, volume("orders"))
	for _, options := range []store.DeleteOptions{{UID: model.NewUID()}, {Version: 1}} {
		_, err := f.Volumes.Delete(t.Context(), "orders", options)
		wantError[*store.ConflictError](t, err)
	}
}

func TestADryRunSaysTheSameAndChangesNothing(t *testing.T) {
	f := open(t)
	f.prerequisites()
	before := f.raw()
	if err := f.Volumes.Create(t.Context(), volume("orders"), true); err != nil {
		t.Fatal(err)
	}
	bad := volume("orders")
	bad.Spec.Pool = "elsewhere"
	wantError[*model.PreconditionError](t, f.Volumes.Create(t.Context(), bad, true))
	if _, err := f.GatewayPools.Delete(t.Context(), "default", store.DeleteOptions{DryRun: true}); err != nil {
		t.Fatal(err)
	}
	if after := f.raw(); after != before {
		t.Fatalf("changed:\n%s\n%s", before, after)
	}
}

func TestUniqueValuesHaveOneHolderAndAreFreedWithIt(t *testing.T) {
	f := open(t)
	f.prerequisites()
	must(f, f.Hosts, host("web", "a long secret"))
	thief := host("thief", "another secret")
	thief.Spec.Initiators = []string{"iqn.2026-11.org.example:web"}
	wantError[*store.ExistsError](t, f.Hosts.Create(t.Context(), thief, false), "spec.initiators[0]", "Host web")
	if _, err := f.Hosts.Delete(t.Context(), "web", store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	must(f, f.Hosts, thief)
}

func TestAVolumeIsALunOfOneTargetOnly(t *testing.T) {
	f := open(t)
	f.prerequisites()
	must(f, f.Volumes, volume("orders"))
	must(f, f.Targets, target("one", model.TargetLun{ID: 0, Volume: "orders"}))
	two := target("two", model.TargetLun{ID: 0, Volume: "orders"})
	wantError[*store.ExistsError](t, f.Targets.Create(t.Context(), two, false), "spec.luns[0].volume", "Target one")
}

func TestATargetOfFourThousandLunsIsOneTransaction(t *testing.T) {
	f := open(t)
	f.prerequisites()
	large := target("db")
	for id := range int32(model.MaxLuns) {
		name := fmt.Sprintf("v-%d", id)
		must(f, f.Volumes, volume(name))
		large.Spec.Luns = append(large.Spec.Luns, model.TargetLun{ID: id, Volume: name})
	}
	must(f, f.Targets, large)
	if got, err := f.Targets.Get(t.Context(), "db"); err != nil || len(got.Spec.Luns) != model.MaxLuns {
		t.Fatalf("%v", err)
	}
}

func TestSecretsAreNotInTheStoreInTheClear(t *testing.T) {
	f := open(t)
	f.prerequisites()
	must(f, f.Hosts, host("web", "correct horse battery"))
	if all := f.raw(); strings.Contains(all, "correct horse") {
		t.Fatal("the secret is in the store as it is")
	}
	got, err := f.Hosts.Get(t.Context(), "web")
	if err != nil || got.Spec.Chap.Password.Reveal() != "correct horse battery" {
		t.Fatalf("read back: %v", err)
	}
}

func TestAnUpdateSealsSecretsWithTheNewestKey(t *testing.T) {
	old, next := keyring.GenerateKey("old"), keyring.GenerateKey("new")
	ring := func(text string) *keyring.Keyring {
		ring, err := keyring.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return ring
	}
	f := openWith(t, ring(old))
	f.prerequisites()
	if err := f.reopen(ring(old)).Hosts.Create(t.Context(), host("web", "correct horse battery"), false); err != nil {
		t.Fatal(err)
	}
	both := f.reopen(ring(next + old)).Hosts
	kept, err := both.Get(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	if err := both.Update(t.Context(), kept, false); err != nil {
		t.Fatal(err)
	}
	got, err := f.reopen(ring(next)).Hosts.Get(t.Context(), "web")
	if err != nil || got.Spec.Chap.Password.Reveal() != "correct horse battery" {
		t.Fatalf("without the old key: %v", err)
	}
}

func TestSecretsOpenWithAnOldKeyAndNotWithAnother(t *testing.T) {
	f := open(t)
	f.prerequisites()
	must(f, f.Hosts, host("web", "correct horse battery"))
	other, err := keyring.Parse(keyring.GenerateKey("b"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Open(t.Context(), shared.Client, store.Options{Cluster: f.name, Keyring: other})
	wantError[*keyring.MissingKeysError](t, err, `Host web encrypted with key "a"`, "put its line back")
	same, err := keyring.Parse(keyring.GenerateKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Open(t.Context(), shared.Client, store.Options{Cluster: f.name, Keyring: same})
	wantError[*keyring.WrongKeyError](t, err, "Host web", "key file of the others")
}
