package controller

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// plane is a control plane without gateways and pools. It stores objects and returns copies, as a real one does.
type plane struct {
	pb.VolumeServiceClient
	pb.TargetServiceClient
	pb.HostServiceClient
	pb.GatewayServiceClient
	pb.StoragePoolServiceClient
	volumes map[string]*pb.Volume
	targets map[string]*pb.Target
	hosts   map[string]*pb.Host
}

var driverKey, _ = attachment.ParsePrivateKey(attachment.NewPrivateKey())

func (p *plane) service() *Service {
	return &Service{volumes: p, targets: p, hosts: p, gateways: p, pools: p, key: driverKey}
}

// found returns a copy of an object, or NotFound.
func found[T proto.Message](in map[string]T, name string) (T, error) {
	if object, ok := in[name]; ok {
		return proto.Clone(object).(T), nil
	}
	var none T
	return none, status.Error(codes.NotFound, "there is no "+name)
}

// selected returns copies of the objects that have the labels.
func selected[T interface {
	proto.Message
	GetMeta() *pb.ObjectMeta
}](in map[string]T, options *pb.ListOptions) (all []T) {
	for _, object := range in {
		left := maps.Clone(options.GetLabelSelector())
		maps.DeleteFunc(left, func(key, value string) bool { return object.GetMeta().GetLabels()[key] == value })
		if len(left) == 0 {
			all = append(all, proto.Clone(object).(T))
		}
	}
	return all
}

func (p *plane) GetVolume(_ context.Context, r *pb.GetVolumeRequest, _ ...grpc.CallOption) (*pb.GetVolumeResponse, error) {
	existing, err := found(p.volumes, r.GetName())
	return &pb.GetVolumeResponse{Volume: existing}, err
}

func (p *plane) ListVolumes(_ context.Context, r *pb.ListVolumesRequest, _ ...grpc.CallOption) (*pb.ListVolumesResponse, error) {
	return &pb.ListVolumesResponse{Volumes: selected(p.volumes, r.GetOptions())}, nil
}

func (p *plane) UpdateVolume(_ context.Context, r *pb.UpdateVolumeRequest, _ ...grpc.CallOption) (*pb.UpdateVolumeResponse, error) {
	p.volumes[r.GetVolume().GetMeta().GetName()] = r.GetVolume()
	return &pb.UpdateVolumeResponse{Volume: r.GetVolume()}, nil
}

func (p *plane) GetTarget(_ context.Context, r *pb.GetTargetRequest, _ ...grpc.CallOption) (*pb.GetTargetResponse, error) {
	existing, err := found(p.targets, r.GetName())
	return &pb.GetTargetResponse{Target: existing}, err
}

func (p *plane) ListTargets(_ context.Context, r *pb.ListTargetsRequest, _ ...grpc.CallOption) (*pb.ListTargetsResponse, error) {
	return &pb.ListTargetsResponse{Targets: selected(p.targets, r.GetOptions())}, nil
}

func (p *plane) UpdateTarget(_ context.Context, r *pb.UpdateTargetRequest, _ ...grpc.CallOption) (*pb.UpdateTargetResponse, error) {
	p.targets[r.GetTarget().GetMeta().GetName()] = r.GetTarget()
	return &pb.UpdateTargetResponse{Target: r.GetTarget()}, nil
}

func (p *plane) GetHost(_ context.Context, r *pb.GetHostRequest, _ ...grpc.CallOption) (*pb.GetHostResponse, error) {
	existing, err := found(p.hosts, r.GetName())
	return &pb.GetHostResponse{Host: existing}, err
}

func (p *plane) ListHosts(_ context.Context, r *pb.ListHostsRequest, _ ...grpc.CallOption) (*pb.ListHostsResponse, error) {
	return &pb.ListHostsResponse{Hosts: selected(p.hosts, r.GetOptions())}, nil
}

func (p *plane) DeleteHost(_ context.Context, r *pb.DeleteHostRequest, _ ...grpc.CallOption) (*pb.DeleteHostResponse, error) {
	for _, target := range p.targets {
		if slices.Contains(target.GetSpec().GetHosts(), r.GetName()) {
			return nil, status.Error(codes.FailedPrecondition, "a target names it")
		}
	}
	delete(p.hosts, r.GetName())
	return nil, nil
}

func (p *plane) CreateHost(_ context.Context, r *pb.CreateHostRequest, _ ...grpc.CallOption) (*pb.CreateHostResponse, error) {
	r.Host.Meta.Uid = r.GetHost().GetMeta().GetName()
	p.hosts[r.GetHost().GetMeta().GetName()] = r.GetHost()
	return &pb.CreateHostResponse{Host: r.GetHost()}, nil
}

func (p *plane) UpdateHost(_ context.Context, r *pb.UpdateHostRequest, _ ...grpc.CallOption) (*pb.UpdateHostResponse, error) {
	p.hosts[r.GetHost().GetMeta().GetName()] = r.GetHost()
	return &pb.UpdateHostResponse{Host: r.GetHost()}, nil
}

func (p *plane) ListGateways(context.Context, *pb.ListGatewaysRequest, ...grpc.CallOption) (*pb.ListGatewaysResponse, error) {
	return &pb.ListGatewaysResponse{}, nil
}

func (p *plane) GetStoragePool(_ context.Context, r *pb.GetStoragePoolRequest, _ ...grpc.CallOption) (*pb.GetStoragePoolResponse, error) {
	return nil, status.Error(codes.NotFound, "there is no "+r.GetName())
}

const (
	before, after = "n1/iqn.before", "n1/iqn.after"
	elsewhere     = "n2/iqn.elsewhere"
	people        = "people" // a target that users made
)

// publishedPlane has the volume v, published to nodes with these ids.
func publishedPlane(ids ...string) *plane {
	p := &plane{volumes: map[string]*pb.Volume{}, targets: map[string]*pb.Target{}, hosts: map[string]*pb.Host{}}
	p.volume("v", nil, ids...)
	return p
}

func (p *plane) volume(name string, labels map[string]string, ids ...string) {
	all := map[string]string{labelMadeBy: madeBy, labelGatewayPool: "g"}
	maps.Copy(all, labels)
	for _, id := range ids {
		all[publishedLabel(id)] = id
	}
	p.volumes[name] = &pb.Volume{Meta: &pb.ObjectMeta{Name: name, Uid: name, Labels: all}, Spec: &pb.VolumeSpec{Pool: "p"}}
}

func (p *plane) target(name string, labels map[string]string, hosts []string, volumes ...string) {
	spec := &pb.TargetSpec{GatewayPool: "g", Hosts: hosts}
	for i, volume := range volumes {
		spec.Luns = append(spec.Luns, &pb.TargetLun{Id: int32(i), Volume: volume})
	}
	p.targets[name] = &pb.Target{Meta: &pb.ObjectMeta{Name: name, Labels: labels}, Spec: spec}
}

// host creates the driver's Host of a node.
func (p *plane) host(node string, initiators ...string) {
	p.hosts[hostName(node)] = &pb.Host{Meta: &pb.ObjectMeta{Name: hostName(node), Labels: map[string]string{labelMadeBy: madeBy}},
		Spec: &pb.HostSpec{Initiators: initiators}}
}

func (p *plane) unpublish(t *testing.T, volume, id string) {
	t.Helper()
	request := &csi.ControllerUnpublishVolumeRequest{VolumeId: volume, NodeId: id}
	if _, err := p.service().ControllerUnpublishVolume(t.Context(), request); err != nil {
		t.Fatal(err)
	}
}

// to returns the ids to which a volume is published.
func (p *plane) to(volume string) []string { return published(p.volumes[volume]) }

// gone asserts that no host reaches a volume through a target any more.
func (p *plane) gone(t *testing.T, target string) {
	t.Helper()
	if spec := p.targets[target].GetSpec(); len(spec.GetLuns())+len(spec.GetHosts()) > 0 {
		t.Errorf("target %s still has LUNs %v for hosts %v", target, spec.GetLuns(), spec.GetHosts())
	}
}

func TestAVolumeOfANodeThatWasInstalledAgainIsUnpublishedByTheNewIDAndFreeForAnother(t *testing.T) {
	for initiator, what := range map[string]string{"iqn.before": "its Host as it was", "iqn.after": "its Host with the new name"} {
		p := publishedPlane(before)
		p.target("csi.g.p.n1", ours, []string{hostName("n1")}, "v")
		p.host("n1", initiator)
		p.unpublish(t, "v", after)
		p.gone(t, "csi.g.p.n1")
		if len(p.hosts) > 0 {
			t.Errorf("%s: it is left", what)
		}
		if _, err := p.service().claim(t.Context(), "v", elsewhere, false); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestUnpublishingFromANodeLeavesTheOthers(t *testing.T) {
	p := publishedPlane(before, elsewhere)
	p.target("csi.shared.v", map[string]string{labelMadeBy: madeBy, labelShares: "v"}, []string{hostName("n1"), hostName("n2")}, "v")
	p.host("n1", "iqn.after") // another volume has updated it
	p.host("n2", "iqn.elsewhere")
	p.unpublish(t, "v", after)
	spec := p.targets["csi.shared.v"].GetSpec()
	if !slices.Equal(spec.GetHosts(), []string{hostName("n2")}) || len(spec.GetLuns()) != 1 || !slices.Equal(p.to("v"), []string{elsewhere}) {
		t.Errorf("LUNs %v for hosts %v; published to %v", spec.GetLuns(), spec.GetHosts(), p.to("v"))
	}
}

func TestANodeThatWasInstalledAgainClaimsWhatItHadAndNoOtherNodeDoes(t *testing.T) {
	p := publishedPlane(before)
	p.target("csi.g.p.n1", ours, []string{hostName("n1")}, "v")
	p.host("n1", "iqn.before")
	if _, err := p.service().claim(t.Context(), "v", elsewhere, false); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("another node: %v", err)
	}
	volume, err := p.service().claim(t.Context(), "v", after, false)
	if err != nil || !slices.Equal(published(volume), []string{after}) || !slices.Equal(p.to("v"), []string{after}) {
		t.Errorf("published to %v, %v", p.to("v"), err)
	}
	p.gone(t, "csi.g.p.n1") // the old initiator name is no longer admitted
}

func TestAHostOfPeopleStaysInTheirTargetWhileTheNodeHasAVolumeThereByAnotherInitiatorName(t *testing.T) {
	inPeoples := map[string]string{labelTarget: people}
	p := publishedPlane()
	p.volume("v", inPeoples, before)
	p.volume("w", inPeoples, after)
	p.target(people, nil, []string{"theirs"}, "v", "w")
	p.hosts["theirs"] = &pb.Host{Meta: &pb.ObjectMeta{Name: "theirs"}, Spec: &pb.HostSpec{Initiators: []string{"iqn.before", "iqn.after"}}}
	p.unpublish(t, "v", after)
	if spec := p.targets[people].GetSpec(); len(spec.GetHosts()) != 1 || len(spec.GetLuns()) != 1 {
		t.Errorf("LUNs %v for hosts %v", spec.GetLuns(), spec.GetHosts())
	}
	p.unpublish(t, "w", after)
	p.gone(t, people)
}

func TestUnpublishingFromAllNodesTakesTheVolumeOutOfItsTarget(t *testing.T) {
	p := publishedPlane(after, elsewhere)
	p.target("csi.shared.v", map[string]string{labelMadeBy: madeBy, labelShares: "v"}, []string{hostName("n1"), hostName("n2")}, "v")
	p.host("n1", "iqn.after")
	p.host("n2", "iqn.elsewhere")
	p.unpublish(t, "v", "")
	p.gone(t, "csi.shared.v")
	if shares := p.targets["csi.shared.v"].GetMeta().GetLabels()[labelShares]; shares != noVolume || len(p.to("v"))+len(p.hosts) > 0 {
		t.Errorf("the target is for volume %s, which is published to %v; Hosts left: %d", shares, p.to("v"), len(p.hosts))
	}
}
