package csi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	pb "sluice.dev/sluice/proto/sluice/v1"
	"sluice.dev/sluice/tests/cluster"
)

// exportedBy checks the wanted and the actual number of gateways of a publication's target, and that all its portals are theirs.
func exportedBy(t *testing.T, found map[string]string, paths int) {
	t.Helper()
	target := targetOf(t, found)
	if wanted := target.GetSpec().GetPaths(); int(wanted) != paths || len(target.GetStatus().GetPaths()) != paths {
		t.Errorf("target %s: paths are %d, exported by %v; wanted %d", target.GetMeta().GetName(), wanted, target.GetStatus().GetPaths(), paths)
	}
	if portals := strings.Split(found["portals"], ","); len(portals) != paths*len(env.Portals(0)) {
		t.Errorf("target %s: portals of %d gateways are %v", target.GetMeta().GetName(), paths, portals)
	}
}

func TestAVolumeHasAsManyPathsAsItsClassSaysWhateverOtherClassesSay(t *testing.T) {
	for name, as := range map[string]*csi.VolumeCapability{"own": alone, "shared": shared} {
		id := map[string]string{}
		for _, paths := range []string{"", "2", "1"} {
			var parameters map[string]string
			if paths != "" {
				parameters = map[string]string{"paths": paths}
			}
			id[paths] = create(t, fmt.Sprintf("paths-%s-%s", name, paths), as, parameters)
		}
		// One after the other, because targets of shared volumes are reused.
		for range 2 {
			two := published(t, id[""], here, as)
			exportedBy(t, two, 2)
			unpublish(t, id[""], here)
			one := published(t, id["1"], here, as)
			exportedBy(t, one, 1)
			unpublish(t, id["1"], here)
			again := published(t, id["2"], here, as)
			exportedBy(t, again, 2)
			unpublish(t, id["2"], here)
			if one["iqn"] == two["iqn"] || two["iqn"] != again["iqn"] {
				t.Errorf("%s: in %s with one path, in %s and %s with two", name, one["iqn"], two["iqn"], again["iqn"])
			}
		}
	}
}

// gatewayPool returns the name of the only one.
func gatewayPool(t *testing.T) string {
	t.Helper()
	got, err := targets().GetTarget(t.Context(), &pb.GetTargetRequest{Name: "cluster"})
	if err != nil {
		t.Fatal(err)
	}
	return got.GetTarget().GetSpec().GetGatewayPool()
}

func TestAVolumeThatIsPublishedInATargetOfBeforeStaysThereUntilItIsUnpublished(t *testing.T) {
	node := nodeID("node-10")
	id, before := create(t, "of-before", alone, map[string]string{"paths": "1"}), "csi."+gatewayPool(t)+"."+cluster.PoolName+".node-10"
	stored(t, &pb.Target{Meta: &pb.ObjectMeta{Name: before, Labels: madeBy}, Spec: &pb.TargetSpec{GatewayPool: gatewayPool(t), Paths: 1,
		Luns: []*pb.TargetLun{{Id: 7, Volume: id}}}})
	if found := published(t, id, node, alone); found["iqn"] != iqns+before || found["lun"] != "7" {
		t.Errorf("published as LUN %s of %s", found["lun"], found["iqn"])
	}
	unpublish(t, id, node)
	if got, err := targets().GetTarget(t.Context(), &pb.GetTargetRequest{Name: before}); err != nil || shows(got.GetTarget(), id) {
		t.Errorf("the target has the volume still: %v %v", got, err)
	}
	if found := published(t, id, node, alone); found["iqn"] != iqns+before+".paths-1" {
		t.Errorf("published in %s", found["iqn"])
	}
	unpublish(t, id, node)
	other := create(t, "of-now", alone, nil)
	found := published(t, other, node, alone)
	if target := targetOf(t, found); found["iqn"] != iqns+before || target.GetSpec().GetPaths() != 2 {
		t.Errorf("an empty target does not take the number of paths of those who come: %v", target.GetSpec())
	}
	unpublish(t, other, node)
}

func TestATargetIsNotSharedByNodesWhoseNamesMakeTheSame(t *testing.T) {
	name := "csi." + gatewayPool(t) + "." + cluster.PoolName + ".node-11"
	labels := map[string]string{"csi.sluice.dev/node": "another"}
	for key, value := range madeBy {
		labels[key] = value
	}
	stored(t, &pb.Target{Meta: &pb.ObjectMeta{Name: name, Labels: labels}, Spec: &pb.TargetSpec{GatewayPool: gatewayPool(t)}})
	_, err := publish(t, create(t, "same-name", alone, nil), nodeID("node-11"), alone, nil)
	refused(t, err, codes.FailedPrecondition, "is node another's")
}
