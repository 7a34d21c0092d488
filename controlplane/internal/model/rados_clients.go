package model

import (
	"errors"
	"slices"
)

// MaxRadosClients bounds the clients of one incarnation in one pool. The gateway uses another client after each blocklisting. A
// process that has used so many must be restarted.
const MaxRadosClients = 64

// ErrTooManyClients: this incarnation has used MaxRadosClients clients in this pool.
var ErrTooManyClients = errors.New("this process has used too many clients of Ceph: restart it")

// ErrClientFenced: this client is blocklisted.
var ErrClientFenced = errors.New("this client of Ceph has been blocklisted: come back as another one")

// RadosClients are the Ceph clients through which an incarnation of a gateway opened images of a pool, or may open them. All of them
// must be blocklisted before another gateway takes over (R2). A gateway records a client before the client opens an image.
type RadosClients struct {
	PoolUID string     `json:"poolUID"`
	Gateway GatewayRef `json:"gateway"`
	// Clients in the order in which the gateway recorded them.
	Clients []RadosClient `json:"clients"`
	// Leaving: the record is about to be deleted, and its incarnation is assigned no volume. A client that is recorded clears it.
	Leaving bool `json:"leaving,omitempty"`
	// Version of the record in the store.
	Version int64 `json:"-"`
}

// RadosClient is one client of an incarnation.
type RadosClient struct {
	// Client is its name in a blocklist: addresses and nonce.
	Client string `json:"client"`
	// Fenced: the client is known to be blocklisted.
	Fenced bool `json:"fenced,omitempty"`
}

// Open returns the names of the clients that are not known to be blocklisted.
func (r *RadosClients) Open() []string {
	var open []string
	for _, c := range r.Clients {
		if !c.Fenced {
			open = append(open, c.Client)
		}
	}
	return open
}

// Fenced returns the names of the clients that are known to be blocklisted.
func (r *RadosClients) Fenced() []string {
	var fenced []string
	for _, c := range r.Clients {
		if c.Fenced {
			fenced = append(fenced, c.Client)
		}
	}
	return fenced
}

// All returns the names of all clients.
func (r *RadosClients) All() []string {
	all := make([]string, 0, len(r.Clients))
	for _, c := range r.Clients {
		all = append(all, c.Client)
	}
	return all
}

// WithClient returns the record with a client of a gateway that has a stream, and whether that changes the record. Errors:
// ErrClientFenced, ErrTooManyClients.
func (r *RadosClients) WithClient(client string) (RadosClients, bool, error) {
	with := *r
	at := slices.IndexFunc(r.Clients, func(known RadosClient) bool { return known.Client == client })
	switch {
	case at >= 0 && r.Clients[at].Fenced:
		return with, false, ErrClientFenced
	case at >= 0 && !r.Leaving:
		return with, false, nil
	case at < 0 && len(r.Clients) >= MaxRadosClients:
		return with, false, ErrTooManyClients
	}
	if with.Leaving = false; at < 0 {
		with.Clients = append(slices.Clone(r.Clients), RadosClient{Client: client})
	}
	return with, true, nil
}

// WithFenced returns the record with these of its clients marked as blocklisted.
func (r *RadosClients) WithFenced(clients []string) RadosClients {
	with := *r
	with.Clients = slices.Clone(r.Clients)
	for i, c := range with.Clients {
		with.Clients[i].Fenced = c.Fenced || slices.Contains(clients, c.Client)
	}
	return with
}

// IsPartyOf reports whether the gateway of the record owns a volume, is its next owner, or must be fenced from it. Such a record
// stays, because without it the gateway could not be fenced.
func (r *RadosClients) IsPartyOf(v *Volume) bool {
	o := v.Status.Ownership
	return o.Owner == r.Gateway || o.Next == r.Gateway || o.Fence == r.Gateway
}
