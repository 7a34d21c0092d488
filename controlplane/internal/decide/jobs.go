package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Reasons of jobs.
const (
	reasonJobFailed      = model.ReasonJobFailed
	reasonJobUnsupported = model.ReasonJobUnsupported
	reasonJobRuns        = "JobRunning"
)

// jobID names a job by its object, so that two requests for the same operation are one job.
func jobID(uid, what string) string { return uid + "." + what }

// progress is the progress of a job: done, or the reason why not.
type progress struct {
	done    *model.Job
	reason  string
	message string
	// refused is why a request cannot be carried out; nil if it still can.
	refused *model.Refusal
}

// reaches reports whether a gateway reaches a pool.
func reaches(g *model.Gateway, c *model.GatewayConnection, pool *model.StoragePool) bool {
	able := "rbd"
	if pool.Spec.Local != nil {
		if g.Spec.Node != pool.Spec.Local.Node {
			return false
		}
		able = "local"
	}
	return len(c.Capabilities) == 0 || slices.Contains(c.Capabilities, able)
}

// noGatewayMessage describes the gateway for which a job has to wait.
func noGatewayMessage(pool *model.StoragePool) string {
	if pool.Spec.Local != nil {
		return fmt.Sprintf("no gateway of node %s, which has the data, has a stream: this waits for one", pool.Spec.Local.Node)
	}
	return "no gateway that reaches the storage pool, and whose gateway pool is for it, has a stream (spec.gatewayPools of " +
		"StoragePool " + pool.Meta.Name + ")"
}

// gatewayChoice selects the gateway for a job.
type gatewayChoice struct {
	// preferred carries the job out if it can, by number.
	preferred uint32
	// only: no other gateway may.
	only bool
	// last carries it out only if no other gateway can, by number.
	last uint32
}

// heldProgress is the progress of operations that wait for an administrator after a restore.
func heldProgress(operations []string) progress {
	return progress{reason: model.HeldReason, message: "the store was restored from a backup in which this was pending: " +
		strings.Join(operations, ", ") + "; it waits for a decision: `sluicectl restore list`, then `restore confirm` or `restore discard`"}
}

// anyone: any gateway may carry out the job.
var anyone gatewayChoice

// worker returns a gateway that can carry out a job in a pool: the preferred one, if it can, else the one with the lowest number
// that reports no problem of the pool and did not just fail.
func (v *LeaderView) worker(pool *model.StoragePool, to gatewayChoice, failed uint32) (uint32, bool) {
	best, bestRank := uint32(0), 0
	for number, l := range v.links {
		g := v.GatewayByNumber(number)
		if l.connection == nil || g == nil || !reaches(g, l.connection, pool) || !v.Serves(g, pool) ||
			pool.Spec.RBD != nil && !v.hasClient(pool, l.connection.Ref) { // it does not reach the pool yet
			continue
		}
		if number == to.preferred {
			return number, true
		}
		rank := 0
		if r, known := v.pools[pool.Meta.UID][number]; known && r.Problem != "" {
			rank = 2
		}
		if number == failed {
			rank++
		}
		if number == to.last {
			rank += 4
		}
		if best == 0 || rank < bestRank || rank == bestRank && number < best {
			best, bestRank = number, rank
		}
	}
	return best, best != 0
}

// runJob assigns a job until it is done. Then the caller drops it.
func (v *LeaderView) runJob(decision *Decision, object model.Object, pool *model.StoragePool, job model.Job, to gatewayChoice, now time.Time,
) progress {
	given, failed := v.Jobs[job.ID], uint32(0)
	job.PoolUID, job.Kind, job.Name = pool.Meta.UID, object.Kind(), object.Metadata().Name
	if given != nil {
		switch {
		case given.Succeeded():
			return progress{done: given}
		case given.Ended() && given.Result.Unsupported:
			return progress{reason: reasonJobUnsupported, message: given.Result.Problem}
		case given.Ended():
			pause := Backoff(given.Attempt)
			// A longer wait means that the clock of the replica that stored the result was ahead. Then it is ignored.
			if left := pause - now.Sub(given.Result.At); left > 0 && left <= pause {
				decision.wait(left)
				return progress{reason: reasonJobFailed, message: given.Result.Problem}
			}
			failed = given.Gateway
		case !v.lostWorker(given, now, decision):
			return progress{reason: reasonJobRuns, message: fmt.Sprintf("gateway %s is at it: %d of 1000", v.gatewayName(given.Gateway),
				given.Result.DonePermille)}
		}
		job.Version, job.Attempt = given.Version, given.Attempt
	}
	if doubt := v.identityProblem(pool); doubt != "" {
		return progress{reason: reasonUnidentified, message: doubt}
	}
	number, ok := v.worker(pool, to, failed)
	if !ok || to.only && number != to.preferred {
		return progress{reason: reasonNoCandidate, message: noGatewayMessage(pool)}
	}
	if given != nil && !given.Ended() && number == given.Gateway {
		return progress{reason: reasonJobRuns, message: fmt.Sprintf("gateway %s is at it", v.gatewayName(given.Gateway))}
	}
	job.Gateway = number
	decision.add(&GiveJob{Subject: about(object), Job: &job})
	return progress{reason: reasonJobRuns, message: fmt.Sprintf("gateway %s is asked for it", v.gatewayName(number))}
}

// lostWorker reports whether a job's gateway has been away so long that another one may carry out the job.
func (v *LeaderView) lostWorker(job *model.Job, now time.Time, decision *Decision) bool {
	if _, present := v.connected(job.Gateway); present {
		return false
	}
	g := v.GatewayByNumber(job.Gateway)
	if g == nil || g.Status.Health == model.GatewayDead {
		return true
	}
	left := ReconnectGrace - now.Sub(v.link(job.Gateway).lost)
	decision.wait(left)
	return left <= 0
}

// cancelJobs ends jobs that made something that must be deleted, and reports whether all are gone. Only then may it be deleted;
// otherwise it would be made again afterwards. Until the deletion is stored as a job without a gateway they stay, because only
// they record that there is something to delete.
func (v *LeaderView) cancelJobs(decision *Decision, object model.Object, deletion model.Job, ids ...string) bool {
	gone := true
	for _, id := range ids {
		job := v.Jobs[id]
		if job == nil {
			continue
		}
		gone = false
		if v.Jobs[deletion.ID] != nil {
			decision.add(drop(object, job))
		}
	}
	if !gone && v.Jobs[deletion.ID] == nil {
		decision.add(&GiveJob{Subject: about(object), Job: &deletion})
	}
	return gone
}

// DecideJob drops a job whose object is gone.
func (v *LeaderView) DecideJob(id string, _ time.Time) Decision {
	var decision Decision
	job := v.Jobs[id]
	if job == nil {
		return decision
	}
	if _, known := v.JobObject(id); !known {
		decision.add(&DropJob{Subject: Subject{Kind: KindJob, Name: id}, Job: job})
	}
	return decision
}

// JobObject returns the key of a job's object, if the object exists.
func (v *LeaderView) JobObject(id string) (Key, bool) {
	uid, _, _ := strings.Cut(id, ".")
	if volume := v.VolumeByUID(uid); volume != nil {
		return Key{model.KindVolume, volume.Meta.Name}, true
	}
	if snapshot := v.SnapshotByUID(uid); snapshot != nil {
		return Key{model.KindSnapshot, snapshot.Meta.Name}, true
	}
	if pool := v.StoragePoolByUID(uid); pool != nil {
		return Key{model.KindStoragePool, pool.Meta.Name}, true
	}
	return Key{}, false
}
