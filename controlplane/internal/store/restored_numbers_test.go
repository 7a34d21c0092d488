package store_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"

	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
)

// site is a system with a separate etcd, which can be lost.
type site struct {
	*fixture
	embedded *etcd.Embedded
}

func openSite(t *testing.T, directory string, ring *keyring.Keyring) *site {
	t.Helper()
	embedded, err := etcd.StartEmbedded(t.Context(), directory, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(embedded.Close)
	opened, err := store.Open(t.Context(), embedded.Client, store.Options{Cluster: "c", Keyring: ring})
	if err != nil {
		t.Fatal(err)
	}
	return &site{&fixture{Store: opened, t: t, ring: ring}, embedded}
}

// backedUp returns a backup of the site.
func (s *site) backedUp() string {
	s.t.Helper()
	file, err := os.Create(filepath.Join(s.t.TempDir(), "backup"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := s.Backup(s.t.Context(), file); err != nil {
		s.t.Fatal(err)
	}
	return file.Name()
}

// restoredFrom returns the site as restored from a backup, with Restored called the given number of times.
func (s *site) restoredFrom(backup string, noted int) *site {
	s.t.Helper()
	directory := s.t.TempDir()
	if err := etcd.Restore(backup, directory, time.Now()); err != nil {
		s.t.Fatal(err)
	}
	embedded, err := etcd.StartEmbedded(s.t.Context(), directory, zap.NewNop())
	if err != nil {
		s.t.Fatal(err)
	}
	for range noted {
		if _, _, err := store.Restored(s.t.Context(), embedded.Client, time.Now(), nil); err != nil {
			s.t.Fatal(err)
		}
	}
	embedded.Close()
	return openSite(s.t, directory, s.ring)
}

// gives creates a gateway, and exports the target `db` through it. It returns the numbers that were assigned.
func (s *site) gives(n int) map[string]uint32 {
	s.t.Helper()
	made := gateway(n)
	must(s.fixture, s.Gateways, made)
	ports := []model.TargetPort{}
	given := map[string]uint32{"gateway": made.Status.Number}
	for fabric, tag := range made.Status.PortalGroupTags {
		given["tag of "+fabric] = tag
		ports = append(ports, model.TargetPort{Gateway: made.Status.Number, PortalGroupTag: tag})
	}
	var exported *model.Target
	storetest.During(s.t, s.Store, func(term *store.Term) {
		var err error
		if exported, err = term.AddPorts(s.t.Context(), "db", ports); err != nil {
			s.t.Fatal(err)
		}
	})
	for _, port := range exported.Status.Ports {
		given["port"] = max(given["port"], port.RelativePortID)
	}
	return given
}

func TestARestoredStoreGivesNoNumberASecondTime(t *testing.T) {
	f := open(t)
	s := openSite(t, t.TempDir(), f.ring)
	s.prerequisites()
	must(s.fixture, s.Targets, target("db"))
	s.gives(1)
	first := s.backedUp()
	lost := s.gives(2)
	s = s.restoredFrom(first, 1)
	again := s.gives(3)
	for what, number := range again {
		if number <= lost[what] {
			t.Errorf("%s: %d was given after the backup, and %d is after it was restored", what, lost[what], number)
		}
	}

	second := s.backedUp()
	lost = s.gives(4)
	s = s.restoredFrom(second, 2)
	again = s.gives(5)
	for what, number := range again {
		if number <= lost[what] {
			t.Errorf("%s, restored for the second time: %d was given after the backup, and %d is now", what, lost[what], number)
		}
		if number > lost[what]+5000 {
			t.Errorf("%s: %d after %d: one restore, noted twice, is taken for two", what, number, lost[what])
		}
	}
}

func TestWhereNoNumbersAreLeftAfterARestoreNoneIsGiven(t *testing.T) {
	f := open(t)
	f.prerequisites()
	if _, err := shared.Client.Put(t.Context(), "/sluice/"+f.name+"/numbers/gateway", "65000"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Restored(t.Context(), shared.Client, time.Now(), nil); err != nil {
		t.Fatal(err)
	}
	err := f.Gateways.Create(t.Context(), gateway(1), false)
	wantError[*store.ExhaustedError](t, err, "65535", "gateway", "after a restore")
}
