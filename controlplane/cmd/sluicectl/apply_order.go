package main

import (
	"strings"

	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// ordered puts each object after the objects that it names, and keeps the order of the files otherwise. The control plane refuses
// an object that names a missing one. The operator needs no such order, because it tries again.
func ordered(objects []described) []described {
	named := map[string]int{}
	for i, object := range objects {
		named[object.String()] = i
	}
	done := make([]bool, len(objects))
	var all []described
	var put func(int)
	put = func(i int) {
		if done[i] {
			return
		}
		done[i] = true // set before the others: a cycle has no order, and the control plane refuses it
		for _, needed := range needs(objects[i].message) {
			if j, among := named[needed]; among {
				put(j)
			}
		}
		all = append(all, objects[i])
	}
	for i := range objects {
		put(i)
	}
	return all
}

// needs returns the objects that an object names, each as kind and name.
func needs(object proto.Message) []string {
	var all []string
	add := func(kind string, names ...string) {
		for _, name := range names {
			all = append(all, kind+" "+name)
		}
	}
	switch o := object.(type) {
	case *pb.Volume:
		add("StoragePool", o.GetSpec().GetPool())
		add("Snapshot", o.GetSpec().GetSource().GetSnapshot())
		add("Volume", o.GetSpec().GetSource().GetVolume())
	case *pb.Snapshot:
		add("Volume", o.GetSpec().GetVolume())
	case *pb.Target:
		add("GatewayPool", o.GetSpec().GetGatewayPool())
		add("Host", o.GetSpec().GetHosts()...)
		for _, lun := range o.GetSpec().GetLuns() {
			add("Volume", lun.GetVolume())
		}
	case *pb.Host:
		for _, place := range o.GetSpec().GetSwitches() {
			fabric, _, _ := strings.Cut(place, "/")
			add("Fabric", fabric)
		}
	case *pb.GatewayPool:
		add("Fabric", o.GetSpec().GetFabrics()...)
	case *pb.Gateway:
		add("GatewayPool", o.GetSpec().GetGatewayPool())
		for _, portal := range o.GetSpec().GetPortals() {
			add("Fabric", portal.GetFabric())
		}
	case *pb.StoragePool:
		add("GatewayPool", o.GetSpec().GetGatewayPools()...)
	}
	return all
}
