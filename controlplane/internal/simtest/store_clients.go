package simtest

import (
	"maps"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/orchestrator"
	"sluice.dev/sluice/controlplane/internal/store"
)

// clientChange is one entry of the log of records of clients. It is a log of its own: a watch of its own tells it.
type clientChange struct {
	record  *store.RadosClients
	deleted bool
	version int64
}

// putClients stores a record as it is now.
func (m *memory) putClients(r store.RadosClients) {
	m.revision++
	r.Version = m.revision
	m.clients[r.Gateway] = &r
	m.clientLog = append(m.clientLog, clientChange{record: &r, version: m.revision})
}

func (m *memory) dropClients(r *store.RadosClients) {
	m.revision++
	delete(m.clients, r.Gateway)
	m.clientLog = append(m.clientLog, clientChange{record: r, deleted: true, version: m.revision})
}

// recordClient is store.RecordRadosClient.
func (m *memory) recordClient(by model.GatewayRef, client string) error {
	record := store.RadosClients{PoolUID: cephPool, Gateway: by}
	if known := m.clients[by]; known != nil {
		record = *known
	}
	at := slices.IndexFunc(record.Clients, func(c store.RadosClient) bool { return c.Client == client })
	switch {
	case at >= 0 && record.Clients[at].Fenced:
		return store.ErrClientFenced
	case at >= 0:
		return nil
	case len(record.Clients) >= store.MaxRadosClients:
		return store.ErrTooManyClients
	}
	record.Clients = append(slices.Clone(record.Clients), store.RadosClient{Client: client})
	m.putClients(record)
	return nil
}

// isStill says that a record is as it was seen.
func (m *memory) isStill(seen *store.RadosClients) bool {
	if known := m.clients[seen.Gateway]; known != nil {
		return known.Version == seen.Version
	}
	return seen.Version == 0
}

// applyClients carries out what is decided on a record.
func (w *World) applyClients(a orchestrator.Action) bool {
	m := w.store
	if seen := a.DropClients; seen != nil {
		used := func(v *model.Volume) bool {
			o := v.Status.Ownership
			return o.Owner == seen.Gateway || o.Next == seen.Gateway || o.Fence == seen.Gateway
		}
		stream := m.records["connection/"+w.names[seen.Gateway.Number-1]].Connection
		connected := stream != nil && stream.Ref == seen.Gateway
		if m.isStill(seen) && !connected && !slices.ContainsFunc(w.volumes(), used) {
			m.dropClients(seen)
		}
		return true
	}
	if !m.isStill(a.FenceClients) {
		return false
	}
	w.checkNoted(a.Clients)
	record := *a.FenceClients
	record.Clients = slices.Clone(record.Clients)
	for i, c := range record.Clients {
		record.Clients[i].Fenced = c.Fenced || slices.Contains(a.Clients, c.Client)
	}
	m.putClients(record)
	return true
}

// tellClients brings a view up to a place in the log of clients.
func (m *memory) tellClients(v *orchestrator.View, from, to int) {
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

// restoreClients brings the records back to what they once were.
func (w *World) restoreClients() {
	m := w.store
	past := map[model.GatewayRef]*store.RadosClients{}
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
