package findings

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *survey) storagePool(p *model.StoragePool) {
	s.reach(p)
	ready, degraded := conditionOf(p, model.ConditionReady), conditionOf(p, model.ConditionDegraded)
	identify := "mount the pool's storage at " + placeOf(p)
	if p.Spec.RBD != nil {
		identify = "restore the Ceph pool " + placeOf(p) + ", or correct spec.rbd.monitors"
	}
	identify += "; if it was replaced deliberately, `sluicectl pool adopt " + p.Meta.Name + "`"
	doubt := "may be other storage than it was; nothing is created or deleted there: "
	switch {
	case ready.Status != model.ConditionFalse, ready.Reason == model.ReasonNoGateway: // the latter is what reach finds
	case ready.Reason == model.ReasonPoolNotIdentified:
		s.add(rulePoolNotIdentified, of(p), doubt+ready.Message, identify, ready.LastTransitionTime)
	default:
		s.add(rulePoolUnreachable, of(p), "is not reachable: "+ready.Message,
			"look at its storage: "+placeOf(p)+", and at the logs of the gateways", ready.LastTransitionTime)
	}
	if degraded.Status == model.ConditionTrue {
		s.degradedPool(p, degraded, doubt, identify)
	}
	if p.NearlyFull() {
		s.add(rulePoolNearlyFull, of(p), fmt.Sprintf("is %.0f %% full", float64(p.Status.UsedBytes)*100/float64(p.Status.CapacityBytes)),
			"enlarge it, or delete volumes and snapshots that are not needed", time.Time{})
	}
	if n := p.Status.OrphanedImageCount; n > 0 {
		s.add(ruleOrphanedImages, of(p), fmt.Sprintf("has %d images with names of volumes that do not exist", n),
			"look at each, then remove it: `sluicectl pool get "+p.Meta.Name+" -o yaml` lists them in status.orphanedImages",
			p.Status.ImagesListed)
	}
	s.deletion(p)
}

func (s *survey) degradedPool(p *model.StoragePool, c model.Condition, doubt, identify string) {
	since := c.LastTransitionTime
	switch {
	case c.Reason == model.ReasonImageMissing:
		s.add(ruleImageMissing, of(p), c.Message, "restore the images, or delete the volumes: `sluicectl pool get "+p.Meta.Name+
			" -o yaml` names them in status.missingImages", since)
	case c.Reason == model.ReasonTakenOut:
		s.add(ruleDeviceTakenOut, of(p), c.Message, "the message names the remedy", since)
	case c.Reason == model.ReasonDevicesUnusable:
		s.add(ruleDevicesUnusable, of(p), "has devices that cannot hold a volume: "+c.Message, "the message names the remedy", since)
	case c.Reason == model.ReasonNearlyFull, s.has(of(p), Warning): // the same fault as another finding about the pool
	case c.Reason == model.ReasonPoolNotIdentified: // another gateway identifies it, and serves its volumes
		s.add(rulePoolNotIdentified, of(p), doubt+c.Message, identify, since, asOnly(Warning))
	default:
		s.add(rulePoolDegraded, of(p), "has a problem: "+c.Message, "look at its storage: "+placeOf(p)+", and at the logs of the gateways", since)
	}
}

// reach finds a pool that no gateway can open.
func (s *survey) reach(p *model.StoragePool) {
	var absent []Ref
	for _, name := range slices.Sorted(maps.Keys(s.Gateways)) {
		g := s.Gateways[name]
		if !s.Serves(g, p) {
			continue
		}
		if mayServe(g) {
			return
		}
		if s.has(of(g), Warning) {
			absent = append(absent, of(g))
		}
	}
	cause, remedy := "no gateway that is for it is ready: no gateway reaches it", "start the gateways; `sluicectl gateway list`"
	if p.Spec.Local != nil {
		node := p.Spec.Local.Node
		cause = "no gateway is ready on node " + node + ": no gateway reaches it"
		remedy = "start sluice-gateway on node " + node + ", under a gateway that `sluicectl gateway create --node " + node + "` makes"
	}
	var details []detail
	if !s.holdsVolumes(p) { // no host needs it
		details = append(details, asOnly(Advice))
	}
	if len(absent) > 0 {
		details = append(details, from(absent[0]))
	}
	s.add(rulePoolNoGateway, of(p), cause, remedy, conditionOf(p, model.ConditionReady).LastTransitionTime, details...)
}

// holdsVolumes reports whether a pool holds a volume that hosts are to use.
func (s *survey) holdsVolumes(p *model.StoragePool) bool {
	for _, v := range s.Volumes {
		if v.Spec.Pool == p.Meta.Name && s.wanted(v) {
			return true
		}
	}
	return false
}

// placeOf describes where the storage of a pool is.
func placeOf(p *model.StoragePool) string {
	switch {
	case p.Spec.RBD != nil:
		place := p.Spec.RBD.Pool
		if p.Spec.RBD.RadosNamespace != "" {
			place += "/" + p.Spec.RBD.RadosNamespace
		}
		return place + " at " + strings.Join(p.Spec.RBD.Monitors, ", ")
	case p.Spec.Local == nil:
		return "its place"
	case p.Spec.Local.Directory != "":
		return p.Spec.Local.Directory + " on node " + p.Spec.Local.Node
	}
	return fmt.Sprintf("%d devices on node %s", len(p.Spec.Local.Devices), p.Spec.Local.Node)
}
