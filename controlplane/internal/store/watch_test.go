package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

var errEnough = errors.New("enough")

// watched returns changes as words once `enough` were received.
func watched(f *fixture, after int64, enough int) []string {
	f.t.Helper()
	var seen []string
	err := f.Fabrics.Watch(f.t.Context(), after, func(c store.Change[*model.Fabric]) error {
		switch c.Type {
		case store.Reset:
			seen = append(seen, "reset")
		case store.Put:
			seen = append(seen, "put "+c.Object.Meta.Name)
		case store.Deleted:
			seen = append(seen, "deleted "+c.Object.Meta.Name)
		case store.Bookmark:
			return nil
		}
		if len(seen) == enough {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		f.t.Fatalf("heard %v, then %v", seen, err)
	}
	return seen
}

func fabric(name string) *model.Fabric { return &model.Fabric{Meta: model.Meta{Name: name}} }

func TestAWatchSendsTheObjectsAndThenEveryChange(t *testing.T) {
	f := open(t)
	must(f, f.Fabrics, fabric("a"), fabric("b"))
	var seen []string
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	err := f.Fabrics.Watch(ctx, 0, func(c store.Change[*model.Fabric]) error {
		switch c.Type {
		case store.Put:
			seen = append(seen, "put "+c.Object.Meta.Name)
		case store.Deleted:
			seen = append(seen, "deleted "+c.Object.Meta.Name)
			return errEnough
		case store.Bookmark:
			if len(seen) == 2 { // the present ones were received; now others follow
				must(f, f.Fabrics, fabric("c"))
				if _, err := f.Fabrics.Delete(ctx, "a", store.DeleteOptions{}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if !errors.Is(err, errEnough) || fmt.Sprint(seen) != "[put a put b put c deleted a]" {
		t.Fatalf("heard %v, then %v", seen, err)
	}
}

func TestAWatchGoesOnAfterTheVersionGiven(t *testing.T) {
	f := open(t)
	must(f, f.Fabrics, fabric("a"))
	_, version, err := f.Fabrics.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	must(f, f.Fabrics, fabric("b"), fabric("c"))
	if seen := fmt.Sprint(watched(f, version, 2)); seen != "[put b put c]" {
		t.Fatal(seen)
	}
}

func TestAWatchFromACompactedVersionStartsAgain(t *testing.T) {
	f := open(t)
	must(f, f.Fabrics, fabric("a"))
	_, version, err := f.Fabrics.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	must(f, f.Fabrics, fabric("b"))
	if _, err := f.Fabrics.Delete(t.Context(), "a", store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	now, err := shared.Client.Get(t.Context(), "any", clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Client.Compact(t.Context(), now.Header.Revision); err != nil {
		t.Fatal(err)
	}
	if seen := fmt.Sprint(watched(f, version, 2)); seen != "[reset put b]" {
		t.Fatal(seen)
	}
}

func TestPagesOfAListShowOneMoment(t *testing.T) {
	f := open(t)
	must(f, f.Fabrics, fabric("a"), fabric("b"), fabric("c"))
	first, err := f.Fabrics.List(t.Context(), store.ListOptions{PageSize: 2})
	if err != nil || len(first.Objects) != 2 || first.Next == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	must(f, f.Fabrics, fabric("bb"), fabric("d"))
	second, err := f.Fabrics.List(t.Context(), store.ListOptions{PageSize: 2, PageToken: first.Next})
	if err != nil || len(second.Objects) != 1 || second.Objects[0].Meta.Name != "c" || second.Next != "" {
		t.Fatalf("%+v, %v", second, err)
	}
}

func TestAListSelectsByLabels(t *testing.T) {
	f := open(t)
	for i := range 7 {
		made := fabric(fmt.Sprintf("f-%d", i))
		made.Meta.Labels = map[string]string{"odd": fmt.Sprint(i % 2)}
		must(f, f.Fabrics, made)
	}
	page, err := f.Fabrics.List(t.Context(), store.ListOptions{PageSize: 2, Labels: map[string]string{"odd": "1"}})
	if err != nil || len(page.Objects) != 2 || page.Objects[1].Meta.Name != "f-3" {
		t.Fatalf("%+v, %v", page, err)
	}
}

func TestAForgedPageTokenIsRefused(t *testing.T) {
	f := open(t)
	for _, token := range []string{"x", "MTI", "LTEgYQ", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5IGE"} {
		if _, err := f.Fabrics.List(t.Context(), store.ListOptions{PageToken: token}); !errors.Is(err, store.ErrPageToken) {
			t.Errorf("token %q: %v", token, err)
		}
	}
}

func TestAStoreOfANewerReleaseIsLeftAlone(t *testing.T) {
	f := open(t)
	if _, err := shared.Client.Put(t.Context(), "/sluice/"+f.name+"/schema", "99"); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(t.Context(), shared.Client, store.Options{Cluster: f.name, Keyring: f.ring})
	wantError[*store.SchemaError](t, err, "99")
}

func TestManyObjectsDeletedAtOnceAreSentInTheirLastState(t *testing.T) {
	f := open(t)
	const count = 250 // more than one request may read
	for i := range count {
		must(f, f.Fabrics, fabric(fmt.Sprint("f-", i)))
	}
	after, err := f.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for i := range count {
		last, err := f.Fabrics.Delete(t.Context(), fmt.Sprint("f-", i), store.DeleteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want[last.Meta.Name] = last.Meta.UID
	}
	err = f.Fabrics.Watch(t.Context(), after, func(c store.Change[*model.Fabric]) error {
		if c.Type == store.Deleted {
			if want[c.Object.Meta.Name] != c.Object.Meta.UID {
				return fmt.Errorf("got %+v", c.Object.Meta)
			}
			delete(want, c.Object.Meta.Name)
		}
		if len(want) == 0 {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		t.Errorf("%d did not arrive: %v", len(want), err)
	}
}
