package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Collection stores the objects of one kind. The specifics of the kind are in its own file.
type Collection[T model.Object] struct {
	store  *Store
	kind   model.Kind
	recent *recent[T]
	noun[T]
}

// noun has the specifics of a kind. A nil function means that the kind has none.
type noun[T model.Object] struct {
	// empty returns an object to decode into.
	empty func() T
	// claims returns the values that must be unique among all objects of all kinds.
	claims func(T) []claim
	// references returns the objects that must not be removed while this one exists.
	references func(T) []reference
	// secretsOf points at every secret, always in the same order for the same object.
	secretsOf func(T) []*model.Secret
	// creating assigns the values that are assigned once: numbers, identity. It runs again if the creation is repeated.
	creating func(context.Context, *tx, T) error
	// updating checks a change and carries over the fields that a user cannot set. It adds comparisons for all that it depends
	// on.
	updating func(ctx context.Context, t *tx, from, to T) error
	// lingers: deletion only marks an object. The leader removes it (Term.Remove) once nothing is left of it.
	lingers bool
	// removed deletes the records that belong to an object that is removed.
	removed func(context.Context, *tx, T) error
	// copied returns an equal copy of an object. It is set for kinds that are stored so often that watches receive the copy
	// instead of decoding; nil: watches decode. Parts that the two share must not be changed once the object is stored.
	copied func(T) T
}

// claim is a unique value, such as an IQN, and the field that contains it.
type claim struct{ what, value, field string }

func (c claim) id() string { return c.what + "/" + c.value }

// reference names an object that must exist, and the field that names it.
type reference struct {
	kind  model.Kind
	name  string
	field string
}

func (r reference) id() string { return string(r.kind) + "/" + r.name }

func (c *Collection[T]) secrets(object T) []*model.Secret {
	if c.secretsOf == nil {
		return nil
	}
	return c.secretsOf(object)
}

func (c *Collection[T]) prefix() string             { return c.store.prefix + "objects/" + string(c.kind) + "/" }
func (c *Collection[T]) key(name string) string     { return c.prefix() + name }
func (c *Collection[T]) holds(object T) []reference { return callOptional(c.references, object) }
func (c *Collection[T]) claimsOf(object T) []claim  { return callOptional(c.claims, object) }

func callOptional[T any, R any](f func(T) []R, object T) []R {
	if f == nil {
		return nil
	}
	return f(object)
}

// Get returns an object, linearizably. Errors: NotFoundError.
func (c *Collection[T]) Get(ctx context.Context, name string) (T, error) {
	var none T
	got, err := c.store.client.Get(ctx, c.key(name))
	if err != nil {
		return none, fmt.Errorf("store: %w", err)
	}
	if len(got.Kvs) == 0 {
		return none, &NotFoundError{c.kind, name}
	}
	return c.decode(c.key(name), got.Kvs[0].Value, got.Kvs[0].ModRevision)
}

// Create stores a new object: it sets defaults, uid and time, and checks references and unique values. On return object equals
// the stored one. Errors: InvalidError, PreconditionError, ExistsError, ErrBusy.
func (c *Collection[T]) Create(ctx context.Context, object T, dryRun bool) error {
	complete(object)
	if err := object.Validate().Err(); err != nil {
		return err
	}
	meta := object.Metadata()
	meta.UID, meta.Generation, meta.DeleteTime = model.NewUID(), 1, nil
	meta.CreateTime = c.store.now().UTC()
	return retry(ctx, func() error {
		var t tx
		t.compare(missing(c.key(meta.Name)), c.existsError(meta.Name))
		if c.creating != nil {
			if err := c.creating(ctx, &t, object); err != nil {
				return err
			}
		}
		_, claims := difference(nil, c.claimsOf(object), claim.id)
		for _, claim := range claims {
			c.claim(&t, claim, meta.Name)
		}
		_, references := difference(nil, c.holds(object), reference.id)
		for _, reference := range references {
			c.refer(&t, reference, meta.Name)
		}
		t.put(c.store.aliveKey(c.kind, meta.Name), meta.UID)
		return c.write(ctx, &t, object, dryRun)
	})
}

// write completes and commits a transaction that stores an object. A dry run only compares.
func (c *Collection[T]) write(ctx context.Context, t *tx, object T, dryRun bool) error {
	meta := object.Metadata()
	value, err := c.encode(object)
	if err != nil {
		return err
	}
	t.put(c.key(meta.Name), string(value))
	if dryRun {
		t.writes = nil
	} else if c.copied != nil {
		c.recent.expect(c.key(meta.Name), value, c.copied(object))
	}
	revision, err := c.store.commit(ctx, t)
	if err != nil {
		return err
	}
	if !dryRun {
		meta.Version = revision
	}
	return nil
}

// Update stores the user's part of an object: spec and labels. Its version must be the stored one, or 0.
// Errors: InvalidError, PreconditionError, NotFoundError, ConflictError, ExistsError, ErrBusy.
func (c *Collection[T]) Update(ctx context.Context, object T, dryRun bool) error {
	asked := object.Metadata().Version
	return retry(ctx, func() error {
		from, err := c.Get(ctx, object.Metadata().Name)
		if err != nil {
			return err
		}
		meta, old := object.Metadata(), from.Metadata()
		if asked != 0 && asked != old.Version {
			return &ConflictError{c.kind, old.Name}
		}
		if old.Deleting() {
			return model.Precondition("meta.deleteTime", "%s %s is being deleted", c.kind, old.Name)
		}
		meta.UID, meta.CreateTime, meta.DeleteTime = old.UID, old.CreateTime, nil
		meta.Generation = old.Generation + 1
		complete(object)
		if err := object.Validate().Err(); err != nil {
			return err
		}
		var t tx
		if c.updating != nil {
			if err := c.updating(ctx, &t, from, object); err != nil {
				return err
			}
		}
		err = c.replace(ctx, &t, from, object, dryRun)
		if errors.Is(err, errLost) && asked != 0 {
			return &ConflictError{c.kind, old.Name}
		}
		return err
	})
}

// replace stores an object instead of the one that it was made from, with its claims and references.
func (c *Collection[T]) replace(ctx context.Context, t *tx, from, to T, dryRun bool) error {
	name := from.Metadata().Name
	t.compare(clientv3.Compare(clientv3.ModRevision(c.key(name)), "=", from.Metadata().Version), nil)
	gone, come := difference(c.claimsOf(from), c.claimsOf(to), claim.id)
	for _, claim := range gone {
		t.delete(c.store.claimKey(claim))
	}
	for _, claim := range come {
		c.claim(t, claim, name)
	}
	lost, added := difference(c.holds(from), c.holds(to), reference.id)
	for _, reference := range lost {
		t.delete(c.store.referenceKey(reference.kind, reference.name, c.kind, name))
	}
	for _, reference := range added {
		c.refer(t, reference, name)
	}
	return c.write(ctx, t, to, dryRun)
}

// difference returns the elements that are only in the first list, and those that are only in the second, by key.
func difference[E any](from, to []E, key func(E) string) (gone, come []E) {
	had, has := map[string]bool{}, map[string]bool{}
	for _, e := range from {
		had[key(e)] = true
	}
	for _, e := range to {
		if !had[key(e)] && !has[key(e)] {
			come = append(come, e)
		}
		has[key(e)] = true
	}
	for _, e := range from {
		if !has[key(e)] {
			gone = append(gone, e)
			has[key(e)] = true
		}
	}
	return gone, come
}

// modify changes the status of an object, and repeats the change while other writers come first. change returns false if there is
// nothing to do. It must not modify the spec. `more` adds to the transaction.
func (c *Collection[T]) modify(ctx context.Context, name string, change func(T) (bool, error),
	more ...func(*tx) error,
) (T, error) {
	return c.modifyNewest(ctx, func() (T, error) { return c.Get(ctx, name) }, change, more...)
}

// modifyNewest is modify for the object that `newest` returns. `newest` is called again after each attempt that lost.
func (c *Collection[T]) modifyNewest(ctx context.Context, newest func() (T, error), change func(T) (bool, error),
	more ...func(*tx) error,
) (T, error) {
	var last T
	err := retry(ctx, func() error {
		object, err := newest()
		if err != nil {
			return err
		}
		last = object
		if changed, err := change(object); err != nil || !changed {
			return err
		}
		var t tx
		meta := object.Metadata()
		t.compare(clientv3.Compare(clientv3.ModRevision(c.key(meta.Name)), "=", meta.Version), nil)
		for _, step := range more {
			if err := step(&t); err != nil {
				return err
			}
		}
		return c.write(ctx, &t, object, false)
	})
	return last, err
}

// DeleteOptions are conditions of a deletion; zero values match anything.
type DeleteOptions struct {
	Version int64
	UID     string
	DryRun  bool
	// Allowed returns why the stored object may not be deleted; nil: it may.
	Allowed func(*model.Meta) error
}

// Delete requests deletion. Objects that linger are marked, and the leader removes them; others are removed at once. It returns
// the last state. Errors: NotFoundError, ConflictError, PreconditionError (other objects refer to it), ErrBusy.
func (c *Collection[T]) Delete(ctx context.Context, name string, options DeleteOptions) (T, error) {
	var last T
	err := retry(ctx, func() error {
		object, err := c.Get(ctx, name)
		if err != nil {
			return err
		}
		meta := object.Metadata()
		last = object
		if options.Version != 0 && options.Version != meta.Version || options.UID != "" && options.UID != meta.UID {
			return &ConflictError{c.kind, name}
		}
		if options.Allowed != nil {
			if err := options.Allowed(meta); err != nil {
				return err
			}
		}
		if meta.Deleting() {
			return nil
		}
		var t tx
		t.compare(clientv3.Compare(clientv3.ModRevision(c.key(name)), "=", meta.Version), nil)
		t.compare(absent(c.store.referencesTo(c.kind, name)), c.referredError(name))
		t.delete(c.store.aliveKey(c.kind, name))
		if !c.lingers {
			return c.erase(ctx, &t, object, options.DryRun)
		}
		now := c.store.now().UTC()
		meta.DeleteTime = &now
		return c.write(ctx, &t, object, options.DryRun)
	})
	return last, err
}

// remove is Term.Remove in a transaction.
func (c *Collection[T]) remove(ctx context.Context, t *tx, object T) error {
	meta := object.Metadata()
	if !meta.Deleting() {
		return model.Precondition("meta.deleteTime", "%s %s was not deleted", c.kind, meta.Name)
	}
	t.compare(clientv3.Compare(clientv3.ModRevision(c.key(meta.Name)), "=", meta.Version), nil)
	err := c.erase(ctx, t, object, false)
	if errors.Is(err, errLost) {
		return &ConflictError{c.kind, meta.Name}
	}
	return err
}

func (c *Collection[T]) erase(ctx context.Context, t *tx, object T, dryRun bool) error {
	name := object.Metadata().Name
	t.delete(c.key(name))
	claims, _ := difference(c.claimsOf(object), nil, claim.id)
	for _, claim := range claims {
		t.delete(c.store.claimKey(claim))
	}
	references, _ := difference(c.holds(object), nil, reference.id)
	for _, reference := range references {
		t.delete(c.store.referenceKey(reference.kind, reference.name, c.kind, name))
	}
	if c.removed != nil {
		if err := c.removed(ctx, t, object); err != nil {
			return err
		}
	}
	if dryRun {
		t.writes = nil
	}
	_, err := c.store.commit(ctx, t)
	return err
}

func (c *Collection[T]) claim(t *tx, claim claim, name string) {
	key := c.store.claimKey(claim)
	t.compare(missing(key), func(ctx context.Context) error {
		holder, err := c.store.client.Get(ctx, key)
		if err != nil || len(holder.Kvs) == 0 {
			return err
		}
		return &ExistsError{c.kind, claim.field, claim.value, string(holder.Kvs[0].Value)}
	})
	t.put(key, fmt.Sprintf("%s %s", c.kind, name))
}

func (c *Collection[T]) refer(t *tx, to reference, name string) {
	alive := c.store.aliveKey(to.kind, to.name)
	t.compare(present(alive), func(ctx context.Context) error {
		got, err := c.store.client.Get(ctx, alive)
		if err != nil || len(got.Kvs) > 0 {
			return err
		}
		return model.Precondition(to.field, "there is no %s named %q, or it is being deleted", to.kind, to.name)
	})
	t.put(c.store.referenceKey(to.kind, to.name, c.kind, name), "")
}

func (c *Collection[T]) existsError(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := c.store.client.Get(ctx, c.key(name), clientv3.WithKeysOnly())
		if err != nil || len(got.Kvs) == 0 {
			return err
		}
		return &ExistsError{c.kind, "meta.name", name, fmt.Sprintf("%s %s", c.kind, name)}
	}
}

func (c *Collection[T]) referredError(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		prefix := c.store.referencesTo(c.kind, name)
		got, err := c.store.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(3))
		if err != nil || got.Count == 0 {
			return err
		}
		var who []string
		for _, kv := range got.Kvs {
			who = append(who, strings.Replace(strings.TrimPrefix(string(kv.Key), prefix), "/", " ", 1))
		}
		if got.Count > int64(len(who)) {
			who = append(who, "…")
		}
		return model.Precondition("meta.name", "%s %s is in use by %s", c.kind, name, strings.Join(who, ", "))
	}
}
