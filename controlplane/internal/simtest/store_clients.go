package simtest

import (
	"maps"
	"slices"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// clientChange is one entry of the log of records of clients. This log is separate, because a separate watch reports it.
type clientChange struct {
	record  *model.RadosClients
	deleted bool
	version int64
}

// putClients stores a record.
func (m *memory) putClients(r model.RadosClients) *model.RadosClients {
	m.revision++
	r.Version = m.revision
	m.clients[r.Gateway] = &r
	m.clientLog = append(m.clientLog, clientChange{record: &r, version: m.revision})
	return &r
}

func (m *memory) dropClients(r *model.RadosClients) {
	m.revision++
	delete(m.clients, r.Gateway)
	m.clientLog = append(m.clientLog, clientChange{record: r, deleted: true, version: m.revision})
}

// recordClient is store.RecordRadosClient.
func (m *memory) recordClient(by model.GatewayRef, client string) error {
	record := model.RadosClients{PoolUID: cephPool, Gateway: by}
	if known := m.clients[by]; known != nil {
		record = *known
	}
	record, changed, err := record.WithClient(client)
	if changed {
		m.putClients(record)
	}
	return err
}

// unchanged reports whether a record has not changed since it was read.
func (m *memory) unchanged(seen *model.RadosClients) bool {
	if known := m.clients[seen.Gateway]; known != nil {
		return known.Version == seen.Version
	}
	return seen.Version == 0
}

// tellClients applies the log of clients up to a place to a view.
func (m *memory) tellClients(v *decide.LeaderView, from, to int) {
	for _, c := range m.clientLog[from:to] {
		if c.deleted {
			v.DeleteRadosClients(c.record, c.version)
		} else {
			v.PutRadosClients(c.record)
		}
	}
}

func (m *memory) refs() []model.GatewayRef {
	return slices.SortedFunc(maps.Keys(m.clients), func(a, b model.GatewayRef) int {
		return slices.Compare([]string{a.String()}, []string{b.String()})
	})
}

// restoreClients sets the records to an earlier state.
func (w *Simulation) restoreClients() {
	m := w.store
	past := map[model.GatewayRef]*model.RadosClients{}
	for _, c := range m.clientLog[:w.random.IntN(len(m.clientLog)+1)] {
		if past[c.record.Gateway] = c.record; c.deleted {
			delete(past, c.record.Gateway)
		}
	}
	for _, ref := range m.refs() {
		if past[ref] == nil {
			m.dropClients(m.clients[ref])
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(past), func(a, b model.GatewayRef) int {
		return slices.Compare([]string{a.String()}, []string{b.String()})
	}) {
		m.putClients(*past[ref])
	}
	for _, v := range w.volumes() {
		if inCeph(v) {
			w.restored[v.Meta.UID] = true
		}
	}
}
