package decide

import (
	"maps"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// kindRules has the leader's functions for the objects of one kind. A nil function does nothing.
type kindRules struct {
	kind   model.Kind
	names  func(*LeaderView) []string
	decide func(v *LeaderView, name string, now time.Time) Decision
	// touched returns the other objects that a change of an object affects. before is nil if the object is new.
	touched func(v *LeaderView, before, object model.Object) []Key
	// reported returns the object of a gateway's report on what it has applied, nil if there is none.
	reported func(*LeaderView, model.AppliedReport) model.Object
	// deleted removes the state that the view has beside an object that was deleted.
	deleted func(*LeaderView, model.Object)
	// reset removes the state that the view has beside the objects of the kind.
	reset func(*LeaderView)
}

// kinds has the rules in the order in which the leader decides on everything. It does not decide on GatewayPools and Fabrics;
// other decisions read them.
var kinds []kindRules

// init is needed because the rules of one kind refer to those of others, which would be an initialization cycle.
func init() {
	kinds = []kindRules{
		{kind: model.KindGateway, names: func(v *LeaderView) []string { return names(v.Gateways) }, decide: (*LeaderView).DecideGateway,
			touched: (*LeaderView).touchedByChangedGateway, reported: (*LeaderView).reportedGateway, deleted: (*LeaderView).deletedGateway},
		{kind: model.KindStoragePool, names: func(v *LeaderView) []string { return names(v.StoragePools) }, decide: (*LeaderView).DecidePool,
			touched: (*LeaderView).touchedByPool, deleted: (*LeaderView).deletedPool},
		{kind: model.KindTarget, names: func(v *LeaderView) []string { return names(v.Targets) }, decide: (*LeaderView).DecideTarget,
			touched: (*LeaderView).touchedByTarget, reported: (*LeaderView).reportedTarget, deleted: (*LeaderView).deletedTarget},
		{kind: model.KindVolume, names: func(v *LeaderView) []string { return names(v.Volumes) }, decide: (*LeaderView).DecideVolume,
			touched: (*LeaderView).touchedByVolume, reported: (*LeaderView).reportedVolume, deleted: (*LeaderView).deletedVolume,
			reset: (*LeaderView).resetVolumes},
		{kind: model.KindSnapshot, names: func(v *LeaderView) []string { return names(v.Snapshots) }, decide: (*LeaderView).DecideSnapshot,
			touched: (*LeaderView).touchedBySnapshot, reset: func(v *LeaderView) { clear(v.snapshots) }},
		{kind: model.KindHost, names: func(v *LeaderView) []string { return names(v.Hosts) }, decide: (*LeaderView).DecideHost,
			touched: (*LeaderView).touchedByHost},
		{kind: KindJob, names: func(v *LeaderView) []string { return names(v.Jobs) }, decide: (*LeaderView).DecideJob},
	}
}

// rulesOf returns the rules of a kind; they are empty for a kind on which the leader does not decide.
func rulesOf(kind model.Kind) *kindRules {
	for i := range kinds {
		if kinds[i].kind == kind {
			return &kinds[i]
		}
	}
	return &kindRules{}
}

func (v *LeaderView) reportedVolume(r model.AppliedReport) model.Object {
	return orNil(v.VolumeByUID(r.UID))
}
func (v *LeaderView) reportedTarget(r model.AppliedReport) model.Object {
	return orNil(v.TargetByUID(r.UID))
}
func (v *LeaderView) reportedGateway(r model.AppliedReport) model.Object {
	return orNil(v.GatewayByNumber(r.Gateway.Number))
}

// orNil returns a plain nil instead of an interface with a nil pointer.
func orNil[T interface {
	comparable
	model.Object
}](object T) model.Object {
	var none T
	if object == none {
		return nil
	}
	return object
}

func (v *LeaderView) resetVolumes() {
	clear(v.holds)
	clear(v.moves)
	clear(v.rates)
	clear(v.used)
	clear(v.unmade)
	v.takeovers = newTakeovers()
}

func (v *LeaderView) deletedVolume(object model.Object) {
	name, uid := object.Metadata().Name, object.Metadata().UID
	delete(v.reports, uid)
	delete(v.rates, uid)
	delete(v.used, uid)
	delete(v.failures, name)
	delete(v.stayReasons, name)
	v.takeovers.ended(name, true)
	delete(v.sighted, Key{model.KindVolume, name})
}

func (v *LeaderView) deletedTarget(object model.Object) {
	name := object.Metadata().Name
	delete(v.plan.paths, name)
	maps.DeleteFunc(v.sighted, func(key Key, _ sighting) bool {
		return key.Kind == model.KindTarget && strings.HasPrefix(key.Name, name+"/")
	})
}

func (v *LeaderView) deletedPool(object model.Object) {
	delete(v.pools, object.Metadata().UID)
	delete(v.clients, object.Metadata().UID)
}

func (v *LeaderView) deletedGateway(object model.Object) {
	number := object.(*model.Gateway).Status.Number
	delete(v.links, number)
	delete(v.peers, number)
	delete(v.loads, number)
}
