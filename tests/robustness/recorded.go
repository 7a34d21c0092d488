package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/netns"
)

// The faults below replace recorded things by others: another process, pool, image or store. The product must refuse them.
// Histories show data from elsewhere; `recorded` also checks what must not change, and what must be reported.

const (
	// refusedShortest and refusedLongest give gateways time to start, to open volumes and to report.
	refusedShortest, refusedLongest = 3500 * time.Millisecond, 5 * time.Second
	imposedShortest, imposedLongest = 1500 * time.Millisecond, 3 * time.Second // of another process
	// reportedWithin bounds the time of a report after that.
	reportedWithin = 10 * time.Second
	keptSuffix     = ".kept"
)

// recordedKinds of faults.
var recordedKinds = []string{"missing pool", "replaced image", "truncated image", "damaged record", "duplicate process", "wrong key", "emptied store"}

// recorded makes these faults.
type recorded struct {
	*clustered
	random *rand.Rand
	// storage has the directory of each pool's files; uids are those of the workload's volumes.
	storage []string
	uids    []string
	// reports: each refusal must be reported as well. During other faults there may be no gateway that reports it.
	reports bool
	// others are processes that must not run; wrong are findings.
	others []*netns.Process
	wrong  []string
	made   int
}

// startRecorded reads the recorded values. It returns nil if volumes are in Ceph.
func (c *clustered) startRecorded(ctx context.Context, seed uint64, reports bool) (err error) {
	if c.Ceph != nil {
		return nil
	}
	r := &recorded{clustered: c, random: rand.New(rand.NewPCG(seed, 0x4ec04d)), reports: reports}
	for _, d := range c.disks {
		r.storage = append(r.storage, d.backing)
	}
	if len(c.disks) == 0 {
		r.storage = []string{c.Pool, c.OtherPool}
	}
	for i := range clusterVolumes {
		var shown struct{ Meta struct{ UID string } }
		if err := r.show(ctx, &shown, "volume", cluster.VolumeName(i)); err != nil {
			return err
		}
		r.uids = append(r.uids, shown.Meta.UID)
	}
	c.recorded = r
	return nil
}

func (r *recorded) find(format string, arguments ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, arguments...))
}

func (r *recorded) show(ctx context.Context, into any, kind, name string) error {
	ctx, cancel := context.WithTimeout(ctx, reportedWithin)
	defer cancel()
	text, err := r.Control(ctx, kind, "get", name, "-o", "json")
	return errors.Join(err, json.Unmarshal(text, into))
}

// reported requires that a condition of an object gets a reason.
func (r *recorded) reported(ctx context.Context, kind, name, condition, reason string) {
	if !r.reports {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reportedWithin)
	defer cancel()
	if err := netns.Until(ctx, func() error {
		var shown struct {
			Status struct {
				Conditions []struct{ Type, Reason, Message string }
			}
		}
		if err := r.show(ctx, &shown, kind, name); err != nil {
			return err
		}
		for _, c := range shown.Status.Conditions {
			if c.Type == condition && c.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", shown.Status.Conditions)
	}); err != nil {
		r.find("%s %s: condition %s does not say %s: %v", kind, name, condition, reason, err)
	}
}

func (r *recorded) faults() []*fault {
	if r == nil {
		return nil
	}
	all := []*fault{
		storageFault("the pools' files are gone while all gateways start", "missing pool", r.hidePool),
		storageFault("an empty file takes the place of an image", "replaced image", r.replaceImage),
		storageFault("an image has lost its end", "truncated image", r.truncateImage),
		storageFault("a byte of a volume's record is damaged, and its owner killed", "damaged record", r.damageRecord),
		processFault("a second process uses a gateway's state directory", "duplicate process", r.twinOfState),
		processFault("a second process uses a copy of a gateway's state directory", "duplicate process", r.twinOfCopy),
		processFault("a gateway starts with the certificate of another one", "wrong key", r.wrongCertificate),
		processFault("a replica starts with another key file", "wrong key", r.wrongKeyFile),
	}
	if r.reports { // requests of others would meanwhile reach the wrong control plane
		all = append(all, processFault("a control plane with an empty store takes the address", "emptied store", r.emptyStore))
	}
	return all
}

// storageFault acts on the pool; its undo restores it.
func storageFault(name, kind string, do imposition) *fault {
	return imposed(name, kind, refusedShortest, refusedLongest, do)
}

// processFault starts a process; its undo ends it.
func processFault(name, kind string, do imposition) *fault {
	return imposed(name, kind, imposedShortest, imposedLongest, do)
}

// imposition executes a fault and returns its undo; nil: there is nothing to undo.
type imposition func(context.Context) (undo func(context.Context) error, err error)

// imposed faults do not overlap, because during one there may be no gateway that reports another.
func imposed(name, kind string, shortest, longest time.Duration, do imposition) *fault {
	var undo func(context.Context) error
	return &fault{name: name, on: "what was recorded", kind: kind, weight: 1, shortest: shortest, longest: longest,
		do: func(ctx context.Context) (err error) {
			undo, err = do(ctx)
			return err
		},
		undo: func(ctx context.Context) error {
			if undo == nil {
				return nil
			}
			return undo(ctx)
		}}
}

// restartAll kills all gateways. Their keeper starts them again.
func (r *recorded) restartAll() error {
	var all []error
	for _, gateway := range r.Gateways {
		all = append(all, gateway.Kill())
	}
	return errors.Join(all...)
}

// hidePool leaves empty directories, as below a mount point. Nothing may be created in them.
func (r *recorded) hidePool(context.Context) (func(context.Context) error, error) {
	var all []error
	for _, storage := range r.storage {
		all = append(all, os.Rename(storage, storage+keptSuffix), os.Mkdir(storage, 0o700))
	}
	if err := errors.Join(append(all, r.restartAll())...); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		r.reported(ctx, "pool", cluster.PoolName, "Ready", "PoolNotIdentified")
		var all []error
		for _, storage := range r.storage {
			made, err := filepath.Glob(filepath.Join(storage, "*"))
			hidden, err2 := filepath.Glob(filepath.Join(storage, ".sluice", "*"))
			if made = append(made, hidden...); len(made) > 0 {
				r.find("in the directory that is not the pool was made: %v", made)
			}
			all = append(all, err, err2, os.RemoveAll(storage), os.Rename(storage+keptSuffix, storage))
		}
		return errors.Join(all...)
	}, nil
}

// storageOf returns the directory that has the files of one of the workload's volumes.
func (r *recorded) storageOf(volume int) string { return r.storage[volume%len(r.storage)] }

// image returns the path of an image of the workload's volumes.
func (r *recorded) image(volume int) string {
	return filepath.Join(r.storageOf(volume), "volume-"+r.uids[volume])
}

// exchangeImage replaces a volume's image by another file, and makes all gateways open it again. Nothing may be written to the
// other file.
func (r *recorded) exchangeImage(other func(image, at string) error) (func(context.Context) error, error) {
	volume := r.random.IntN(clusterVolumes)
	image := r.image(volume)
	r.note("it is the image of %s", cluster.VolumeName(volume))
	made := image + ".other"
	if err := other(image, made); err != nil {
		return nil, err
	}
	before, err := os.ReadFile(made)
	if err := errors.Join(err, os.Rename(image, image+keptSuffix), os.Rename(made, image), r.restartAll()); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		r.reported(ctx, "volume", cluster.VolumeName(volume), "Ready", "OpenFailed")
		after, err := os.ReadFile(image)
		if !slices.Equal(before, after) {
			r.find("%s: the file in the place of its image was changed", cluster.VolumeName(volume))
		}
		return errors.Join(err, os.Rename(image+keptSuffix, image))
	}, nil
}

func (r *recorded) replaceImage(context.Context) (func(context.Context) error, error) {
	return r.exchangeImage(func(image, at string) error {
		was, err := os.Stat(image)
		if err != nil {
			return err
		}
		return errors.Join(os.WriteFile(at, nil, 0o600), os.Truncate(at, was.Size()))
	})
}

// truncateImage truncates a copy, so that the image is intact afterwards.
func (r *recorded) truncateImage(context.Context) (func(context.Context) error, error) {
	return r.exchangeImage(func(image, at string) error {
		data, err := os.ReadFile(image)
		if err != nil {
			return err
		}
		return os.WriteFile(at, data[:len(data)/2], 0o600)
	})
}

// damageRecord flips a bit of a record. The next owner must restore the record.
func (r *recorded) damageRecord(ctx context.Context) (func(context.Context) error, error) {
	volume := r.random.IntN(clusterVolumes)
	record := filepath.Join(r.storageOf(volume), ".sluice", r.uids[volume]+".volume")
	content, err := os.ReadFile(record)
	if err != nil {
		return nil, err
	}
	content[r.random.IntN(len(content))] ^= 1 << r.random.IntN(8)
	if err := os.WriteFile(record, content, 0o600); err != nil {
		return nil, err
	}
	if owner, err := r.Owner(ctx, volume); err != nil {
		if err := r.restartAll(); err != nil {
			return nil, err
		}
	} else if err := r.Gateways[owner].Kill(); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if !r.reports {
			return nil // there may be no owner
		}
		ctx, cancel := context.WithTimeout(ctx, reportedWithin)
		defer cancel()
		if err := netns.Until(ctx, func() error {
			after, err := os.ReadFile(record)
			if err == nil && slices.Equal(after, content) {
				err = errors.New(record + " is as damaged as before")
			}
			return err
		}); err != nil {
			r.find("%s: %v", cluster.VolumeName(volume), err)
		}
		return nil
	}, err
}

// end kills processes that must not run, and returns the findings.
func (r *recorded) end() ([]string, error) {
	if r == nil {
		return nil, nil
	}
	var all []error
	for _, p := range r.others {
		all = append(all, p.Kill())
	}
	return r.wrong, errors.Join(all...)
}
