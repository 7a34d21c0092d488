package test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func volumes() pb.VolumeServiceClient { return pb.NewVolumeServiceClient(env.connection) }

func stored(t *testing.T, name string) *pb.Volume {
	t.Helper()
	got, err := volumes().GetVolume(t.Context(), &pb.GetVolumeRequest{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return got.GetVolume()
}

func deleteVolume(ctx context.Context, name string) error {
	_, err := volumes().DeleteVolume(ctx, &pb.DeleteVolumeRequest{Name: name})
	return err
}

func storagePool(t *testing.T, name string) *v1alpha1.StoragePool {
	return read(t, &v1alpha1.StoragePool{}, fmt.Sprintf(`
metadata: {name: %s}
spec: {local: {node: n1, directory: /srv/%s}}`, name, name))
}

func volume(t *testing.T, name, spec string) *v1alpha1.Volume {
	return read(t, &v1alpha1.Volume{}, fmt.Sprintf("metadata: {namespace: shop, name: %s}\nspec: %s", name, spec))
}

// delivered waits until the control plane has the newest generation.
func delivered(t *testing.T, r v1alpha1.Resource) {
	t.Helper()
	eventually(t, func() error {
		object := r.(client.Object)
		if err := env.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if r.Common().ControlPlane == nil || r.Common().ObservedGeneration != r.GetGeneration() {
			return fmt.Errorf("%s: %+v", r.GetName(), r.Common())
		}
		return nil
	})
}

func TestAVolumeIsMadeGrownAndDeletedInTheControlPlane(t *testing.T) {
	create(t, storagePool(t, "plain"))
	r := volume(t, "orders", `{pool: plain, size: 1Gi, qos: {iops: 100}}`)
	create(t, r)
	delivered(t, r)
	have := stored(t, "shop.orders")
	if have.GetSpec().GetSizeBytes() != 1<<30 || have.GetSpec().GetQos().GetIops() != 100 || r.Status.NAA != have.GetStatus().GetNaa() {
		t.Errorf("have %v, status %+v", have, r.Status)
	}
	if err := change(t, r, func(r *v1alpha1.Volume) { r.Spec.Size.Set(2 << 30); r.Spec.Qos = nil }); err != nil {
		t.Fatal(err)
	}
	delivered(t, r)
	if have := stored(t, "shop.orders"); have.GetSpec().GetSizeBytes() != 2<<30 || have.GetSpec().GetQos() != nil {
		t.Errorf("not grown: %v", have)
	}
	remove(t, r)
	if _, err := volumes().GetVolume(t.Context(), &pb.GetVolumeRequest{Name: "shop.orders"}); status.Code(err) != codes.NotFound {
		t.Errorf("still there: %v", err)
	}
}

func TestDriftIsRepairedAndForeignLabelsStay(t *testing.T) {
	create(t, storagePool(t, "drift"))
	r := volume(t, "drift", `{pool: drift, size: 1Gi}`)
	create(t, r)
	delivered(t, r)
	wrong := stored(t, "shop.drift")
	wrong.Spec.WriteCache, wrong.Meta.Labels["mine"], wrong.Meta.ResourceVersion = pb.WriteCache_WRITE_CACHE_ENABLED, "yes", 0
	if _, err := volumes().UpdateVolume(t.Context(), &pb.UpdateVolumeRequest{Volume: wrong}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		have := stored(t, "shop.drift")
		if have.GetSpec().GetWriteCache() != pb.WriteCache_WRITE_CACHE_DISABLED || have.GetMeta().GetLabels()["mine"] != "yes" {
			return fmt.Errorf("not repaired: %v", have)
		}
		return nil
	})
}

func TestAReconciledObjectIsLeftAlone(t *testing.T) {
	create(t, storagePool(t, "quiet"))
	r := volume(t, "quiet", `{pool: quiet, size: 1Gi}`)
	create(t, r)
	delivered(t, r)
	before := stored(t, "shop.quiet").GetMeta().GetGeneration()
	for i := range 5 { // each wakes the controller
		if err := change(t, r, func(r *v1alpha1.Volume) { r.Annotations = map[string]string{"note": fmt.Sprint(i)} }); err != nil {
			t.Fatal(err)
		}
	}
	other := volume(t, "quiet-too", `{pool: quiet, size: 1Gi}`)
	create(t, other)
	delivered(t, other)
	if after := stored(t, "shop.quiet").GetMeta().GetGeneration(); after != before {
		t.Errorf("written again though nothing had changed: generation %d, before %d", after, before)
	}
}

func TestAForeignObjectIsAdoptedByItsUIDOnly(t *testing.T) {
	create(t, storagePool(t, "adopt"))
	eventually(t, func() error {
		_, err := volumes().CreateVolume(t.Context(), &pb.CreateVolumeRequest{Volume: &pb.Volume{
			Meta: &pb.ObjectMeta{Name: "shop.taken"}, Spec: &pb.VolumeSpec{Pool: "adopt", SizeBytes: 1 << 30}}})
		return err
	})
	uid := stored(t, "shop.taken").GetMeta().GetUid()
	r := volume(t, "taken", `{pool: adopt, size: 2Gi}`)
	create(t, r)
	ready(t, r, metav1.ConditionFalse, "NameTaken", "sluice.dev/adopt="+uid)
	if size := stored(t, "shop.taken").GetSpec().GetSizeBytes(); size != 1<<30 {
		t.Errorf("changed though it is not the resource's: %d", size)
	}
	if err := change(t, r, func(r *v1alpha1.Volume) { r.Annotations = map[string]string{v1alpha1.AnnotationAdopt: uid} }); err != nil {
		t.Fatal(err)
	}
	delivered(t, r)
	if have := stored(t, "shop.taken"); have.GetSpec().GetSizeBytes() != 2<<30 || have.GetMeta().GetUid() != uid {
		t.Errorf("not taken over: %v", have)
	}
}

func TestAResourceThatNeverOwnedAnObjectDoesNotDeleteIt(t *testing.T) {
	create(t, storagePool(t, "foreign"))
	eventually(t, func() error {
		_, err := volumes().CreateVolume(t.Context(), &pb.CreateVolumeRequest{Volume: &pb.Volume{
			Meta: &pb.ObjectMeta{Name: "shop.foreign"}, Spec: &pb.VolumeSpec{Pool: "foreign", SizeBytes: 1 << 30}}})
		return err
	})
	t.Cleanup(func() {
		_, _ = volumes().DeleteVolume(context.Background(), &pb.DeleteVolumeRequest{Name: "shop.foreign"})
	})
	r := volume(t, "foreign", `{pool: foreign, size: 1Gi}`)
	create(t, r)
	ready(t, r, metav1.ConditionFalse, "NameTaken", "")
	remove(t, r)
	if stored(t, "shop.foreign").GetMeta().GetDeleteTime() != nil {
		t.Error("deleted although another owner has it")
	}
}

func TestALostVolumeIsNotReplacedByAnEmptyOne(t *testing.T) {
	create(t, storagePool(t, "lost"))
	r := volume(t, "lost", `{pool: lost, size: 1Gi}`)
	create(t, r)
	delivered(t, r)
	if _, err := volumes().DeleteVolume(t.Context(), &pb.DeleteVolumeRequest{Name: "shop.lost"}); err != nil {
		t.Fatal(err)
	}
	ready(t, r, metav1.ConditionFalse, "Lost", "make a new one")
}

func TestAResourceWaitsForWhatItRefersToAndGoesOnWhenThatComes(t *testing.T) {
	r := volume(t, "early", `{pool: late, size: 1Gi}`)
	create(t, r)
	ready(t, r, metav1.ConditionFalse, "NotPossibleNow", `spec.pool: there is no StoragePool named "late"`)
	snapshot := read(t, &v1alpha1.Snapshot{}, "metadata: {namespace: shop, name: early}\nspec: {volume: early}")
	create(t, snapshot)
	ready(t, snapshot, metav1.ConditionFalse, "NotPossibleNow", `there is no Volume named "shop.early"`)
	host := read(t, &v1alpha1.Host{}, `
metadata: {namespace: shop, name: early}
spec: {initiators: ["iqn.2026-11.org.example:early"], allowUnauthenticated: true, switches: [{fabric: green, switch: s}]}`)
	create(t, host)
	ready(t, host, metav1.ConditionFalse, "NotPossibleNow", `there is no Fabric named "green"`)
	target := read(t, &v1alpha1.Target{}, `
metadata: {namespace: shop, name: early}
spec: {gatewayPool: none, luns: [{id: 0, volume: early}], hosts: [early]}`)
	create(t, target)
	ready(t, target, metav1.ConditionFalse, "NotPossibleNow", `there is no GatewayPool named "none"`)
	remove(t, target)
	remove(t, snapshot)
	pool := storagePool(t, "late")
	if err := env.client.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	delivered(t, r)
	remove(t, r)
	remove(t, pool)
}

func TestVolumesWhoseSourcesFormACycleAreReported(t *testing.T) {
	create(t, storagePool(t, "cycle"))
	a := volume(t, "a", `{pool: cycle, size: 1Gi, source: {volume: b}}`)
	b := volume(t, "b", `{pool: cycle, size: 1Gi, source: {volume: c}}`)
	c := volume(t, "c", `{pool: cycle, size: 1Gi, source: {volume: a}}`)
	create(t, a, b, c)
	ready(t, a, metav1.ConditionFalse, "Cycle", "a from b from c from a")
	ready(t, c, metav1.ConditionFalse, "Cycle", "c from a from b from c")
}

func TestADeletedObjectInUseIsRemovedAfterItsLastUse(t *testing.T) {
	pool, r := storagePool(t, "used"), volume(t, "used", `{pool: used, size: 1Gi}`)
	create(t, pool)
	create(t, r)
	delivered(t, r)
	if err := env.client.Delete(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	ready(t, pool, metav1.ConditionFalse, "DeletionBlocked", "in use by Volume shop.used")
	remove(t, r)
	remove(t, pool)
}

func TestAnAbandonedResourceGoesAndItsObjectStays(t *testing.T) {
	create(t, storagePool(t, "abandon"))
	r := volume(t, "abandon", `{pool: abandon, size: 1Gi}`)
	create(t, r)
	delivered(t, r)
	if err := change(t, r, func(r *v1alpha1.Volume) { r.Annotations = map[string]string{v1alpha1.AnnotationAbandon: "true"} }); err != nil {
		t.Fatal(err)
	}
	remove(t, r)
	if stored(t, "shop.abandon").GetMeta().GetDeleteTime() != nil {
		t.Error("it was deleted")
	}
	if _, err := volumes().DeleteVolume(t.Context(), &pb.DeleteVolumeRequest{Name: "shop.abandon"}); err != nil {
		t.Fatal(err)
	}
}

func TestAHostTakesItsSecretFromASecretAndFollowsIt(t *testing.T) {
	hosts := pb.NewHostServiceClient(env.connection)
	r := read(t, &v1alpha1.Host{}, `
metadata: {namespace: shop, name: chap}
spec: {initiators: ["iqn.2026-11.org.example:chap"], chap: {username: web, secretRef: {name: chap}}}`)
	create(t, r)
	ready(t, r, metav1.ConditionFalse, "SecretMissing", "there is no Secret shop/chap")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "chap"},
		Data: map[string][]byte{"wrong": []byte("x")}}
	create(t, secret)
	ready(t, r, metav1.ConditionFalse, "SecretMissing", `no key "password"`)
	if err := change(t, secret, func(s *corev1.Secret) { s.Data = map[string][]byte{"password": []byte("short")} }); err != nil {
		t.Fatal(err)
	}
	ready(t, r, metav1.ConditionFalse, "Invalid", "12 to 255")
	if err := change(t, secret, func(s *corev1.Secret) { s.Data["password"] = []byte("open sesame 42\n") }); err != nil {
		t.Fatal(err)
	}
	ready(t, r, metav1.ConditionTrue, "", "")
	generation := func() int64 {
		got, err := hosts.GetHost(t.Context(), &pb.GetHostRequest{Name: "shop.chap"})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetHost().GetMeta().GetGeneration()
	}
	followed(t, generation, func() {
		if err := change(t, secret, func(s *corev1.Secret) { s.Data["password"] = []byte("open sesame 43") }); err != nil {
			t.Fatal(err)
		}
	})
	if strings.Contains(tail(env.operator.log), "open sesame") {
		t.Error("the secret is in the log")
	}
}

// followed waits until a changed Secret has reached the control plane, which then has another generation.
func followed(t *testing.T, generation func() int64, renew func()) {
	t.Helper()
	before := generation()
	renew()
	eventually(t, func() error {
		if generation() == before {
			return fmt.Errorf("the new secret was not given")
		}
		return nil
	})
}

func TestAPoolInCephTakesItsKeyFromASecret(t *testing.T) {
	r := read(t, &v1alpha1.StoragePool{}, `
metadata: {name: ceph}
spec: {rbd: {monitors: ["192.0.2.1:6789"], user: sluice, pool: rbd, keySecretRef: {namespace: shop, name: ceph}}}`)
	create(t, r)
	ready(t, r, metav1.ConditionFalse, "SecretMissing", "spec.rbd.keySecretRef: there is no Secret shop/ceph")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ceph"},
		Data: map[string][]byte{"other": []byte("x")}}
	create(t, secret)
	ready(t, r, metav1.ConditionFalse, "SecretMissing", `the Secret shop/ceph has no key "key"`)
	holds := func(key string) {
		t.Helper()
		if err := change(t, secret, func(s *corev1.Secret) { s.Data = map[string][]byte{"key": []byte(key)} }); err != nil {
			t.Fatal(err)
		}
	}
	generation := func() int64 {
		got, err := pb.NewStoragePoolServiceClient(env.connection).GetStoragePool(t.Context(), &pb.GetStoragePoolRequest{Name: "ceph"})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetStoragePool().GetMeta().GetGeneration()
	}
	holds("AQD2c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0cw==\n")
	delivered(t, r)
	followed(t, generation, func() { holds("AQD3c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0cw==") })
	if strings.Contains(tail(env.operator.log), "c2VjcmV0") {
		t.Error("the key is in the log")
	}
}

func TestAFabricIsMirroredWithItsLinks(t *testing.T) {
	r := read(t, &v1alpha1.Fabric{}, `
metadata: {name: mesh}
spec: {subnets: [192.0.2.0/24], switches: [s1, s2], links: [{a: s1, b: s2, cost: 3}]}`)
	create(t, r)
	ready(t, r, metav1.ConditionTrue, "Accepted", "")
	got, err := pb.NewFabricServiceClient(env.connection).GetFabric(t.Context(), &pb.GetFabricRequest{Name: "mesh"})
	if err != nil || got.GetFabric().GetSpec().GetLinks()[0].GetCost() != 3 {
		t.Errorf("%v %v", got, err)
	}
	if err := change(t, r, func(r *v1alpha1.Fabric) { r.Spec.Links = []v1alpha1.FabricLink{{A: "s1", B: "s9"}} }); err != nil {
		t.Fatal(err)
	}
	ready(t, r, metav1.ConditionFalse, "Invalid", "spec.links[0]: joins")
}

func TestProblemsAreRecordedAsEvents(t *testing.T) {
	r := volume(t, "refused", `{pool: nowhere, size: 1Gi}`)
	create(t, r)
	eventually(t, func() error {
		var all eventsv1.EventList
		if err := env.client.List(t.Context(), &all, client.InNamespace("shop")); err != nil {
			return err
		}
		if !slices.ContainsFunc(all.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Name == "refused" && e.Reason == "NotPossibleNow" && strings.Contains(e.Note, "nowhere")
		}) {
			return fmt.Errorf("no such Event among %d", len(all.Items))
		}
		return nil
	})
}

func TestAControlPlaneThatIsAwayMakesNothingUnready(t *testing.T) {
	create(t, storagePool(t, "away"))
	r := volume(t, "away", `{pool: away, size: 1Gi}`)
	create(t, r)
	delivered(t, r)
	env.plane.stop()
	if err := change(t, r, func(r *v1alpha1.Volume) { r.Spec.Size.Set(2 << 30) }); err != nil {
		t.Fatal(err)
	}
	ready(t, r, metav1.ConditionUnknown, "ControlPlaneUnreachable", "does not answer")
	if err := env.startControlPlane(); err != nil {
		t.Fatal(err)
	}
	delivered(t, r)
	if size := stored(t, "shop.away").GetSpec().GetSizeBytes(); size != 2<<30 {
		t.Errorf("size %d", size)
	}
}
