package decide

import (
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// compareImages makes a gateway list the images that have names of volumes' images, periodically. It stores the images without a
// volume, and the images of volumes that the pool does not have.
func (v *LeaderView) compareImages(pool *model.StoragePool, now time.Time, decision *Decision) {
	id := pool.Meta.UID + model.ListImagesJob
	every := ListImagesEvery
	switch {
	case len(pool.Status.UnconfirmedImages) > 0:
		every = ConfirmImagesAfter
	case len(pool.Status.MissingImages) > 0:
		every = ListMissingEvery
	}
	left := every - now.Sub(pool.Status.ImagesListed) // a longer time means that that replica's clock was ahead
	if left > 0 && left <= every && v.Jobs[id] == nil {
		decision.wait(left)
		return
	}
	p := v.runJob(decision, pool, pool, model.Job{ID: id, Action: model.JobListImages}, anyone, now)
	if p.done == nil {
		return
	}
	if p.done.Result.At.Equal(pool.Status.ImagesListed) { // only the job's removal failed; a list does not confirm itself
		decision.add(drop(pool, p.done))
		return
	}
	listed := slices.Sorted(slices.Values(p.done.Result.Images))
	images, at := v.unmatched(pool, listed), p.done.Result.At
	unconfirmed := images.confirm(pool)
	event := images.event(pool)
	decision.add(modify(pool, func(o model.Object) bool {
		status := &o.(*model.StoragePool).Status
		status.OrphanedImages, status.OrphanedImageCount, status.ImagesListed = images.orphaned, int32(len(images.orphaned)), at
		status.MissingImages, status.UnconfirmedImages = images.missing, unconfirmed
		return true
	}, event), drop(pool, p.done))
}

// unmatchedImages are images without a volume, and images that volumes should have; both are sorted.
type unmatchedImages struct{ orphaned, missing []string }

// confirm removes, and returns, images that the list before did not report. A volume can be created or deleted between the list and
// the decision about it. The next list begins after this decision, so an image that it does not match either is really unmatched.
func (i *unmatchedImages) confirm(pool *model.StoragePool) []string {
	before := map[string]bool{}
	for _, images := range [][]string{pool.Status.OrphanedImages, pool.Status.MissingImages, pool.Status.UnconfirmedImages} {
		for _, image := range images {
			before[image] = true
		}
	}
	var unconfirmed []string
	isNew := func(image string) bool {
		if !before[image] {
			unconfirmed = append(unconfirmed, image)
		}
		return !before[image]
	}
	i.orphaned, i.missing = slices.DeleteFunc(i.orphaned, isNew), slices.DeleteFunc(i.missing, isNew)
	return unconfirmed[:min(len(unconfirmed), model.MaxImagesListed)]
}

// unmatched compares the volumes of a pool with the listed images, which are sorted. If the list was cut off, no image counts as
// missing.
func (v *LeaderView) unmatched(pool *model.StoragePool, listed []string) unmatchedImages {
	images := unmatchedImages{orphaned: slices.Clone(listed)}
	ours := map[string]bool{}
	for _, volume := range v.Volumes {
		image := model.VolumeLocation(volume)
		ours[image] = true
		if _, found := slices.BinarySearch(listed, image); !found && volume.Spec.Pool == pool.Meta.Name &&
			volume.Status.CapacityBytes > 0 && !volume.Meta.Deleting() && len(listed) < model.MaxImagesListed {
			images.missing = append(images.missing, image)
		}
	}
	images.orphaned = slices.DeleteFunc(images.orphaned, func(image string) bool { return ours[image] })
	slices.Sort(images.missing)
	images.missing = images.missing[:min(len(images.missing), model.MaxImagesListed)]
	return images
}

// event returns an event if more images are unmatched than before.
func (i unmatchedImages) event(pool *model.StoragePool) *Event {
	if n := len(i.missing); n > len(pool.Status.MissingImages) {
		return &Event{true, "MissingImages", fmt.Sprintf("the images of %d volumes are missing, such as %s: restore them, or delete the volumes",
			n, i.missing[0])}
	}
	count := len(i.orphaned)
	if count <= int(pool.Status.OrphanedImageCount) {
		return nil
	}
	action := "adopt or remove them"
	switch {
	case pool.IsDirectory():
		action = "once the data is not needed any more, remove them from " + pool.Spec.Local.Directory
	case pool.Spec.Local != nil:
		action = "`blkdiscard -z` the devices that are listed so once their data is not needed any more, or take them out of the pool"
	}
	return &Event{true, "OrphanedImages", fmt.Sprintf("%d images are named as volumes' and are no volume's, such as %s: %s", count,
		i.orphaned[0], action)}
}
