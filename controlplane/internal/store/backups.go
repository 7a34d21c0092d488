package store

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// backup is the record of the last backup.
type backup struct {
	// Made is the time at which it began, so it has all changes until then.
	Made time.Time `json:"made"`
}

func (s *Store) backupKey() string { return s.prefix + "backup" }

// Backup writes a consistent copy of the whole etcd, including other clusters in it. Then it records that a backup was made.
func (s *Store) Backup(ctx context.Context, to io.Writer) error {
	made := s.now().UTC()
	// The request goes to one member: with an external cluster, the copy is that of this member.
	from, err := s.client.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("store: backup: %w", err)
	}
	defer func() { _ = from.Close() }()
	if _, err := io.CopyBuffer(to, from, make([]byte, 64<<10)); err != nil {
		return fmt.Errorf("store: backup: %w", err)
	}
	value, err := json.Marshal(backup{made})
	if err != nil {
		return err
	}
	if _, err := s.client.Put(ctx, s.backupKey(), string(value)); err != nil {
		return fmt.Errorf("the backup is complete, but its time could not be stored: %w", err)
	}
	return nil
}

// Backups says how well a store is backed up.
type Backups struct {
	// Last is the time of the last complete backup; zero: none was made through the API.
	Last time.Time
	// Since is the time at which the first replica made the system.
	Since time.Time
}

// Backups returns what the store knows of its backups. Copies that etcd's own tools made are not known to it.
func (s *Store) Backups(ctx context.Context) (Backups, error) {
	var known Backups
	var last backup
	var self system
	for key, record := range map[string]any{s.backupKey(): &last, s.systemKey(): &self} {
		got, err := s.client.Get(ctx, key)
		if err != nil {
			return known, fmt.Errorf("store: %w", err)
		}
		if len(got.Kvs) == 0 {
			continue
		}
		if err := json.Unmarshal(got.Kvs[0].Value, record); err != nil {
			return known, fmt.Errorf("%s in the store: %w", key, err)
		}
	}
	known.Last, known.Since = last.Made, self.Since
	return known, nil
}
