package store

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

// system is the record that identifies a system. The first replica that opens a store makes it. Backups contain it, so a restored
// store is the same system.
type system struct {
	// ID is a random UUID.
	ID    string    `json:"id"`
	Since time.Time `json:"since"`
}

var systemID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// ValidSystemID reports whether a text is a UUID in lower case, the form of a system id.
func ValidSystemID(id string) bool { return systemID.MatchString(id) }

// WrongSystemError means that a store belongs to another system than the caller expects.
type WrongSystemError struct {
	// Found is the store's system id; empty: the store has none, because it is new or of a release before system ids. Expected is
	// the caller's.
	Found, Expected string
}

func (e *WrongSystemError) Error() string {
	if e.Found == "" {
		return fmt.Sprintf("the store belongs to no system, and system %s is expected: its data is missing. Restore a backup "+
			"(`sluice-controlplane restore --help`), or name the right --etcd-endpoints and --cluster", e.Expected)
	}
	return fmt.Sprintf("the store belongs to system %s, and system %s is expected: name the right --etcd-endpoints and --cluster, or restore "+
		"a backup of the right system", e.Found, e.Expected)
}

func (s *Store) systemKey() string { return s.prefix + "system" }

// SystemID returns the id of the store's system. Gateways know it and refuse a control plane with another one.
func (s *Store) SystemID() string { return s.system }

// readSystem returns the stored id; empty: none yet.
func (s *Store) readSystem(ctx context.Context) (string, error) {
	got, err := s.client.Get(ctx, s.systemKey())
	if err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	if len(got.Kvs) == 0 {
		return "", nil
	}
	var stored system
	if err := json.Unmarshal(got.Kvs[0].Value, &stored); err != nil || !ValidSystemID(stored.ID) {
		return "", fmt.Errorf("%s in the store is no system id: restore a backup", s.systemKey())
	}
	return stored.ID, nil
}

// checkSystem compares the store's id with the expected one, empty: any. It stores nothing. Error: WrongSystemError.
func (s *Store) checkSystem(ctx context.Context, expected string) error {
	found, err := s.readSystem(ctx)
	if err != nil {
		return err
	}
	if expected != "" && found != expected {
		return &WrongSystemError{found, expected}
	}
	return nil
}

// initSystem stores a system id if there is none: `id`, or a random one if that is empty. If several replicas do so, one of them
// stores it.
func (s *Store) initSystem(ctx context.Context, id string) error {
	if id == "" {
		id = model.NewUID()
	}
	value, err := json.Marshal(system{ID: id, Since: s.now().UTC()})
	if err != nil {
		return err
	}
	_, err = s.client.Txn(ctx).If(missing(s.systemKey())).Then(clientv3.OpPut(s.systemKey(), string(value)),
		clientv3.OpPut(s.accessReportKey(), "due")).Commit()
	if err != nil {
		return committing(err)
	}
	s.system, err = s.readSystem(ctx)
	return err
}

// KeepSystem makes a restored store the system `id`. A backup that was made before the store had an id gets it. Errors:
// WrongSystemError if the backup belongs to another system; nothing is changed then.
func KeepSystem(ctx context.Context, client *clientv3.Client, cluster, id string) error {
	s, err := bind(ctx, client, Options{Cluster: cluster})
	if err != nil {
		return err
	}
	if err := s.initSystem(ctx, id); err != nil {
		return err
	}
	return s.checkSystem(ctx, id)
}
