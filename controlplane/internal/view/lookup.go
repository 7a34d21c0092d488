package view

import "sluice.dev/sluice/controlplane/internal/model"

// find returns what is held under a name, nil where there is none.
func (v *View) find(kind model.Kind, name string) model.Object {
	o := v.objects
	switch kind {
	case model.KindVolume:
		return held(o.Volumes, name)
	case model.KindTarget:
		return held(o.Targets, name)
	case model.KindHost:
		return held(o.Hosts, name)
	case model.KindSnapshot:
		return held(o.Snapshots, name)
	case model.KindStoragePool:
		return held(o.StoragePools, name)
	case model.KindGateway:
		return held(o.Gateways, name)
	case model.KindGatewayPool:
		return held(o.GatewayPools, name)
	case model.KindFabric:
		return held(o.Fabrics, name)
	}
	return nil
}

// sweep forgets all of a kind that was not told.
func (v *View) sweep(kind model.Kind, told map[string]bool) {
	for _, name := range v.names(kind) {
		if !told[name] {
			v.forget(kind, name)
		}
	}
}

func (v *View) names(kind model.Kind) []string {
	o := v.objects
	switch kind {
	case model.KindVolume:
		return names(o.Volumes)
	case model.KindTarget:
		return names(o.Targets)
	case model.KindHost:
		return names(o.Hosts)
	case model.KindSnapshot:
		return names(o.Snapshots)
	case model.KindStoragePool:
		return names(o.StoragePools)
	case model.KindGateway:
		return names(o.Gateways)
	case model.KindGatewayPool:
		return names(o.GatewayPools)
	case model.KindFabric:
		return names(o.Fabrics)
	}
	return nil
}

// held is a plain nil where there is nothing, not an interface around one.
func held[T interface {
	comparable
	model.Object
}](objects map[string]T, name string) model.Object {
	if object, found := objects[name]; found {
		return object
	}
	return nil
}

func names[T any](objects map[string]T) []string {
	found := make([]string, 0, len(objects))
	for name := range objects {
		found = append(found, name)
	}
	return found
}
