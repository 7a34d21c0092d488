// Package faults_test induces real faults in systems of real processes, one row of a table each. It proves that the system reports
// each fault as the finding that the runbook describes, with its cause, and that the finding ends with the fault.
package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/disk"
	"sluice.dev/sluice/tests/netns"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

const (
	// appears bounds the time from a fault to its finding, and disappears that from the repair to the end of the finding. A row adds
	// the time after which the documentation says that the fault is known.
	appears    = 5 * time.Second
	disappears = 10 * time.Second
	// systemLimit bounds all rows of one system.
	systemLimit = 4 * time.Minute
)

// system is a running cluster, with what a row needs to change it.
type system struct {
	*cluster.Cluster
	ctx context.Context
	// files counts the files of resources that were applied.
	files atomic.Int64
	// later has what is done after rows that ran together.
	later []func() error
	// hanging is the disk of pool `stuck`.
	hanging *disk.Disk
	// failing is the disk of pool `failing`.
	failing *disk.Disk
	// reading is held while findings are read, listed is the last result, and began when that reading began.
	reading sync.Mutex
	listed  []string
	failed  error
	began   time.Time
	// healthy are the findings of the system without a fault.
	healthy []string
}

// fault is a row of the table.
type fault struct {
	// name is that of the subtest.
	name string
	// id, object (`Kind/name`) and cause (a part of it) of the expected finding.
	id, object, cause string
	// grace is added to appears, and lasts to disappears. known says why.
	grace, lasts time.Duration
	known        string
	// doctor: `sluicectl doctor` prints it, too.
	doctor bool
	// induce makes the fault, and returns what repairs it.
	induce func(*system) (repair func() error, err error)
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == etcdHelper {
		os.Exit(changeEtcd(os.Args[2], os.Args[3:]))
	}
	if err := netns.Isolate(); err != nil {
		fmt.Println("SKIP faults:", err)
		return
	}
	if err := netns.ShareMounts(); err != nil {
		fmt.Println("SKIP faults:", err)
		return
	}
	os.Exit(m.Run())
}

// start starts a system. prepare changes the options before.
func start(t *testing.T, options cluster.Options) *system {
	t.Helper()
	options.Programs, _ = filepath.Abs("../../build/bin") // the working directory exists
	options.Etcd = filepath.Join(filepath.Dir(options.Programs), "tools", "etcd")
	for _, program := range []string{options.Etcd, filepath.Join(options.Programs, "sluice-controlplane"), filepath.Join(options.Programs, "sluice-gateway")} {
		if _, err := os.Stat(program); err != nil {
			t.Skip("not built: ", err)
		}
	}
	if options.Directory == "" {
		options.Directory = t.TempDir()
	}
	ctx, cancel := context.WithTimeout(context.Background(), systemLimit)
	t.Cleanup(cancel)
	c, err := cluster.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.Logs(8))
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	return &system{Cluster: c, ctx: ctx}
}

// list returns the present findings, each object and each consequence on its own, as `id Kind/name: cause`. Rows that run together
// share a reading that began after each of them asked.
func (s *system) list() ([]string, error) {
	asked := time.Now()
	s.reading.Lock()
	defer s.reading.Unlock()
	if !s.began.After(asked) {
		s.began = time.Now()
		s.listed, s.failed = s.read()
	}
	return s.listed, s.failed
}

func (s *system) read() ([]string, error) {
	ctx, cancel := context.WithTimeout(s.ctx, 4*time.Second)
	defer cancel()
	response, err := pb.NewFindingServiceClient(s.Connection()).ListFindings(ctx, &pb.ListFindingsRequest{EachObject: true, PageSize: 1000})
	if err != nil {
		return nil, err
	}
	var all []string
	for _, f := range response.GetFindings() {
		all = append(all, fmt.Sprintf("%s %s/%s: %s", f.GetId(), f.GetObject().GetKind(), f.GetObject().GetName(), f.GetCause()))
	}
	return all, nil
}

// within tries until the condition holds or the time is over.
func (s *system) within(limit time.Duration, condition func() error) error {
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	return netns.Until(ctx, condition)
}

// expectHealthy waits until the findings are those of the healthy system, and nothing else.
func (s *system) expectHealthy(limit time.Duration) error {
	return s.within(limit, func() error {
		found, err := s.list()
		if err == nil && !slices.Equal(found, s.healthy) {
			err = fmt.Errorf("the findings are\n  %s\nand not\n  %s", strings.Join(found, "\n  "), strings.Join(s.healthy, "\n  "))
		}
		return err
	})
}

// shows fails until the finding of a row is there, or with `wanted` false until it is not.
func (s *system) shows(f *fault, wanted bool) error {
	found, err := s.list()
	if err != nil {
		return err
	}
	about := f.id + " " + f.object + ": "
	for _, line := range found {
		if rest, is := strings.CutPrefix(line, about); is && strings.Contains(rest, f.cause) {
			if wanted {
				return nil
			}
			return errors.New("it is still reported: " + line)
		}
	}
	if wanted {
		return fmt.Errorf("there is no %s with cause %q; the findings are\n  %s", about, f.cause, strings.Join(found, "\n  "))
	}
	return nil
}

// doctorSays fails until sluicectl doctor prints a finding, and exits with 1.
func (s *system) doctorSays(id, cause string) error {
	_, err := s.Control(s.ctx, "doctor")
	said, failed := s.Doctor(s.ctx)
	if err == nil || failed != nil || !strings.Contains(said, " "+id+": ") || !strings.Contains(said, cause) {
		return fmt.Errorf("doctor does not say %s, %q (%w): %s", id, cause, errors.Join(err, failed), said)
	}
	return nil
}

// run induces the fault of a row, and repairs it.
func (f *fault) run(t *testing.T, s *system) {
	t.Helper()
	if err := s.shows(f, false); err != nil {
		t.Fatal("before the fault: ", err)
	}
	repair, err := f.induce(s)
	begun := time.Now()
	if err != nil {
		t.Fatal("the fault: ", err)
	}
	if err := s.within(appears+f.grace, func() error { return s.shows(f, true) }); err != nil {
		t.Errorf("%v after the fault (%s): %v", appears+f.grace, f.known, err)
	}
	known := time.Since(begun)
	if f.doctor {
		if err := s.within(appears, func() error { return s.doctorSays(f.id, f.cause) }); err != nil {
			t.Error(err)
		}
	}
	if repair == nil {
		return
	}
	if err := repair(); err != nil {
		t.Fatal("the repair: ", err)
	}
	begun = time.Now()
	if err := s.within(disappears+f.lasts, func() error { return s.shows(f, false) }); err != nil {
		t.Errorf("%v after the repair (%s): %v", disappears+f.lasts, f.known, err)
	}
	t.Logf("known after %.1f s, gone %.1f s after the repair", known.Seconds(), time.Since(begun).Seconds())
}

// oneAfterTheOther runs rows that would disturb each other. After each, the system is healthy again.
func oneAfterTheOther(t *testing.T, s *system, rows []fault) {
	t.Helper()
	for _, row := range rows {
		if !t.Run(row.name, func(t *testing.T) {
			row.run(t, s)
			if err := s.expectHealthy(disappears + row.lasts); err != nil {
				t.Errorf("%s: after the repair: %v", row.name, err)
			}
		}) {
			if err := s.expectHealthy(time.Minute); err != nil {
				t.Fatal("the next rows have no healthy system: ", err)
			}
		}
	}
}

// together runs rows about different objects at the same time.
func together(t *testing.T, s *system, name string, rows []fault) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				row.run(t, s)
			})
		}
	})
	for _, cleanup := range s.later {
		if err := cleanup(); err != nil {
			t.Error(err)
		}
	}
	s.later = nil
	if err := s.expectHealthy(disappears); err != nil {
		t.Error("after these rows: ", err)
	}
}

// ctl runs sluicectl. It has no quotes.
func (s *system) ctl(words string) error {
	_, err := s.Control(s.ctx, strings.Fields(words)...)
	return err
}

// apply applies resources, each as `Kind name spec`, as in `Host web {initiators: [iqn.2026-11.a:b]}`.
func (s *system) apply(resources ...string) error {
	var text strings.Builder
	for _, r := range resources {
		parts := strings.SplitN(r, " ", 3)
		fmt.Fprintf(&text, "---\napiVersion: sluice.dev/v1\nkind: %s\nmeta: {name: %s}\nspec: %s\n", parts[0], parts[1], parts[2])
	}
	file := filepath.Join(s.Directory, fmt.Sprintf("row-%d.yaml", s.files.Add(1)))
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return err
	}
	return s.ctl("apply -f " + file)
}

// command runs a program of the machine.
func command(words string) error {
	_, err := output(words)
	return err
}

func output(words string) (string, error) {
	parts := strings.Fields(words)
	out, err := exec.Command(parts[0], parts[1:]...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", words, err, out)
	}
	return string(out), err
}

// objects is a fault that exists as long as resources do: it applies them, and deletes them in reverse order.
func resources(all ...string) func(*system) (func() error, error) {
	return func(s *system) (func() error, error) {
		nouns := map[string]string{"StoragePool": "pool"}
		return func() error {
			var failed []error
			for _, r := range slices.Backward(all) {
				parts := strings.SplitN(r, " ", 3)
				noun := nouns[parts[0]]
				if noun == "" {
					noun = strings.ToLower(parts[0])
				}
				failed = append(failed, s.ctl(noun+" delete "+parts[1]+" --wait --timeout 20s"))
			}
			return errors.Join(failed...)
		}, s.apply(all...)
	}
}
