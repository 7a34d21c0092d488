package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
)

// A backup is taken, further changes are made, and the backup is restored twice, because the first restored store is lost, too.
func TestARestoredStoreAssignsNoEpochTwice(t *testing.T) {
	backup := filepath.Join(t.TempDir(), "backup")
	owner := model.GatewayRef{Number: 1, Incarnation: "i"}
	directory := t.TempDir()
	withStore(t, directory, func(s *store.Store) {
		volumeOf(t, s)
		file, err := os.Create(backup)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		if err := s.Backup(t.Context(), file); err != nil {
			t.Fatal(err)
		}
		assigned(t, s, owner)
	})
	epoch := uint64(1)
	for range 2 {
		restored := t.TempDir()
		if done, err := restoreEmbedded(t.Context(), backup, restored, noteBeside(restored, backup)); err != nil || done.volumes != 1 {
			t.Fatalf("%d volumes, %v", done.volumes, err)
		}
		if _, err := os.Stat(filepath.Join(restored, staging)); !os.IsNotExist(err) {
			t.Errorf("something is left aside: %v", err)
		}
		withStore(t, restored, func(s *store.Store) {
			ownership := assigned(t, s, owner)
			if ownership.Epoch <= epoch {
				t.Errorf("epoch %d follows epoch %d", ownership.Epoch, epoch)
			}
			epoch = ownership.Epoch
		})
	}
}

// The first restored store is used, and then lost, too.
func TestABackupThatIsRestoredAgainGivesNoNumberThatTheFirstRestoreGave(t *testing.T) {
	for name, second := range map[string]func(t *testing.T, first, backup string) (directory, from string){
		"where it was restored before": func(t *testing.T, first, backup string) (string, string) {
			remove(t, filepath.Join(first, etcd.Directory))
			copied := filepath.Join(t.TempDir(), "copy")
			text, err := os.ReadFile(backup)
			if err == nil {
				err = os.WriteFile(copied, text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			return first, copied
		},
		"on another disk": func(t *testing.T, _, backup string) (string, string) { return t.TempDir(), backup },
	} {
		t.Run(name, func(t *testing.T) {
			backup, directory := filepath.Join(t.TempDir(), "backup"), t.TempDir()
			withStore(t, directory, func(s *store.Store) {
				houseOf(t, s)
				backupTo(t, s, backup)
			})
			remove(t, filepath.Join(directory, etcd.Directory))
			given := restoredAndUsed(t, backup, directory)
			place, from := second(t, directory, backup)
			if again := restoredAndUsed(t, from, place); again <= given {
				t.Errorf("gateway %d after the first restore, %d after the second", given, again)
			}
		})
	}
}

func TestWhereNothingCanBeNotedBesideABackupTheDirectoryAlsoHoldsIt(t *testing.T) {
	backup, directory := filepath.Join(t.TempDir(), "backup"), t.TempDir()
	withStore(t, directory, func(s *store.Store) { backupTo(t, s, backup) })
	remove(t, filepath.Join(directory, etcd.Directory))
	note := noteBeside(directory, filepath.Join(t.TempDir(), "gone", "backup"))
	if done, err := restoreEmbedded(t.Context(), backup, directory, note); err != nil || done.missing != note.paths[1] {
		t.Errorf("%q is missing, %v", done.missing, err)
	}
	if noted, err := noteBeside(directory, "").read(); err != nil || noted["c"]["gateway"] != 4096 {
		t.Errorf("%v, %v", noted, err)
	}
}

// The backup is taken while operations are pending, and restored.
func TestOperationsPendingInABackupAreHeldUntilTheyAreConfirmed(t *testing.T) {
	backup, directory, again := filepath.Join(t.TempDir(), "backup"), t.TempDir(), t.TempDir()
	withStore(t, directory, func(s *store.Store) {
		volumeOf(t, s)
		storetest.During(t, s, func(term *store.Term) {
			_, err := storetest.Modify(t.Context(), term, "orders", func(v *model.Volume) (bool, error) {
				v.Status.CapacityBytes = v.Spec.SizeBytes / 2
				v.Status.RollBack = &model.RollBackRequest{Snapshot: "uid-of-s"}
				v.Status.MoveRequest = &model.MoveRequest{Gateway: 7}
				return true, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
		if _, err := s.Volumes.Delete(t.Context(), "orders", store.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		orders, err := s.Volumes.Get(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		storetest.During(t, s, func(term *store.Term) {
			for _, what := range []string{"rollback", "delete"} {
				_, err := term.PutJob(t.Context(), model.Job{ID: orders.Meta.UID + "." + what, Kind: model.KindVolume, Name: "orders",
					Gateway: 1, Action: model.JobDeleteImage})
				if err != nil {
					t.Fatal(err)
				}
			}
		})
		backupTo(t, s, backup)
	})
	done, err := restoreEmbedded(t.Context(), backup, again, noteBeside(again, backup))
	if err != nil || len(done.held["c"]) != 1 || done.held["c"][0].Name != "orders" {
		t.Fatalf("%+v, %v", done, err)
	}
	text := strings.Join(done.held["c"][0].Operations, "; ")
	for _, part := range []string{"deletion", "rollback to the snapshot with uid uid-of-s", "resize from", "move to gateway number 7"} {
		if !strings.Contains(text, part) {
			t.Errorf("held: %s, without %q", text, part)
		}
	}
	withStore(t, again, func(s *store.Store) {
		orders, err := s.Volumes.Get(t.Context(), "orders")
		if err != nil || len(orders.Status.Held) != 4 {
			t.Fatalf("%+v, %v", orders, err)
		}
		_ = s.WatchJobs(t.Context(), 0, func(change store.RecordChange[*model.Job]) error {
			switch change.Type {
			case store.Put:
				t.Errorf("a gateway is asked for job %s", change.Record.ID)
			case store.Bookmark:
				return context.Canceled
			}
			return nil
		})
		if err := s.ConfirmHeld(t.Context(), model.KindVolume, "orders"); err != nil {
			t.Fatal(err)
		}
		if err := s.ConfirmHeld(t.Context(), model.KindVolume, "orders"); err == nil {
			t.Error("confirmed twice")
		}
		if held, err := s.Held(t.Context()); err != nil || len(held) > 0 {
			t.Errorf("%v, %v", held, err)
		}
	})
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func backupTo(t *testing.T, s *store.Store, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := s.Backup(t.Context(), file); err != nil {
		t.Fatal(err)
	}
}

func houseOf(t *testing.T, s *store.Store) {
	t.Helper()
	if err := s.Fabrics.Create(t.Context(), &model.Fabric{Meta: model.Meta{Name: "red"}}, false); err != nil {
		t.Fatal(err)
	}
	pool := &model.GatewayPool{Meta: model.Meta{Name: "default"}, Spec: model.GatewayPoolSpec{Fabrics: []string{"red"}}}
	if err := s.GatewayPools.Create(t.Context(), pool, false); err != nil {
		t.Fatal(err)
	}
}

// restoredAndUsed returns the number of a gateway that is created after a restore.
func restoredAndUsed(t *testing.T, backup, directory string) (number uint32) {
	t.Helper()
	if done, err := restoreEmbedded(t.Context(), backup, directory, noteBeside(directory, backup)); err != nil || done.missing != "" {
		t.Fatalf("%q is missing, %v", done.missing, err)
	}
	withStore(t, directory, func(s *store.Store) {
		made := &model.Gateway{Meta: model.Meta{Name: "gw"}, Spec: model.GatewaySpec{GatewayPool: "default", Node: "node-1",
			Portals: []model.Portal{{Listen: "192.0.2.1:3260", Fabric: "red"}}, ForwardingAddress: "192.0.2.1:3261"}}
		if err := s.Gateways.Create(t.Context(), made, false); err != nil {
			t.Fatal(err)
		}
		number = made.Status.Number
	})
	return number
}

func TestABackupThatIsBrokenLeavesNothingBehind(t *testing.T) {
	backup, directory := filepath.Join(t.TempDir(), "backup"), t.TempDir()
	if err := os.WriteFile(backup, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := restoreEmbedded(t.Context(), backup, directory, noteBeside(directory, backup)); err == nil || !strings.Contains(err.Error(), backup) {
		t.Errorf("got %v, wanted an error that names the backup", err)
	}
	if left, err := os.ReadDir(directory); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// testKey is the key of all stores in these tests: a restored store is opened with the keys of its backup.
var testKey = keyring.GenerateKey("a")

// withStore opens the store in a directory while a function uses it.
func withStore(t *testing.T, directory string, use func(*store.Store)) {
	t.Helper()
	embedded, err := etcd.StartEmbedded(t.Context(), directory, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer embedded.Close()
	ring, err := keyring.Parse(testKey)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), embedded.Client, store.Options{Cluster: "c", Keyring: ring})
	if err != nil {
		t.Fatal(err)
	}
	use(s)
}

func volumeOf(t *testing.T, s *store.Store) {
	t.Helper()
	pool := &model.StoragePool{Meta: model.Meta{Name: "nvme"}, Spec: model.StoragePoolSpec{WarnPercent: 85,
		Local: &model.LocalPool{Node: "node-1", Directory: "/srv"}}}
	if err := s.StoragePools.Create(t.Context(), pool, false); err != nil {
		t.Fatal(err)
	}
	volume := &model.Volume{Meta: model.Meta{Name: "orders"}, Spec: model.VolumeSpec{Pool: "nvme", SizeBytes: 1 << 30,
		BlockSize: 512}}
	if err := s.Volumes.Create(t.Context(), volume, false); err != nil {
		t.Fatal(err)
	}
}

func assigned(t *testing.T, s *store.Store, to model.GatewayRef) model.Ownership {
	t.Helper()
	var ownership model.Ownership
	storetest.During(t, s, func(term *store.Term) {
		volume, err := term.Own(t.Context(), "orders", func(v *model.Volume) (model.Ownership, error) {
			return v.Status.Ownership.Assign(to)
		})
		if err != nil {
			t.Fatal(err)
		}
		ownership = volume.Status.Ownership
	})
	return ownership
}
