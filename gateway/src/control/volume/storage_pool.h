// A storage pool of any kind: provides the storage of a volume, manages images and files, and
// reports the pool's state. Local pools are part of this room (local_pool.h). A kind that needs its
// own libraries has its own room (rbd/); main.cc passes it in.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/volume/volume_storage.h"
#include "control/wire.h"

namespace sluice::control {

class ClientCommits;

// The result of a job (gateway_stream.proto, JobResult).
struct JobOutcome {
  std::string problem = {};              // empty: success
  bool unsupported = false;              // the pool can never do this
  int64_t size_bytes = 0;                // AdoptImage
  std::vector<std::string> images = {};  // ListImages
};

// Runs `task` while no host command reads or changes the volume. If this gateway does not serve the
// volume, the task runs immediately with `served` false. Error: the commands could not be paused in
// time.
using BetweenCommands =
    std::function<Result<void>(const std::string& volume, std::function<void(bool served)> task)>;

struct JobServices {
  BetweenCommands between;
  std::function<void(uint32_t permille)> progress;  // of a long job; any thread
  // Runs the task after the tasks that the pool's other jobs have queued. If the gateway ends it
  // does not run, and the control plane sends the job again.
  std::function<void(std::function<void()> task)> again = {};
};

class StoragePool {
 public:
  virtual ~StoragePool() = default;
  // `wake`: of the storage (volume_storage.h); called on any thread.
  virtual Result<std::shared_ptr<VolumeStorage>> storage_of(const wire::DesiredVolume& volume,
                                                            std::function<void()> wake) = 0;
  // A job may be sent again; repeating completed work succeeds. A pool on this node's disks may
  // block for as long as the disks do. `done` runs once, on any thread.
  virtual void run_job(const wire::Job& job, const JobServices& services,
                       std::function<void(JobOutcome)> done) = 0;
  // Reports the current state of the pool; blocks and answers as run_job() does.
  virtual void observe(const std::string& uid, std::function<void(wire::PoolObserved)> done) = 0;
  // Call it about once a second.
  virtual void tick() {}
  // The control plane's newest definition of the pool; the location is the same as before.
  virtual void expect(const wire::DesiredPool& /*desired*/) {}
  // Whether this object still matches `desired`. If not, the caller opens the pool again; open
  // volumes continue with the old object.
  virtual bool is_current(const wire::DesiredPool& /*desired*/) { return true; }
};

// The services of this room that pools of another kind use.
struct PoolServices {
  ClientCommits& commits;
  std::string incarnation;
};

// Creates pools of a kind that is implemented outside this room.
class PoolKind {
 public:
  virtual ~PoolKind() = default;
  virtual Result<std::shared_ptr<StoragePool>> open(const wire::DesiredPool& pool,
                                                    const PoolServices& services) = 0;
  // No callbacks happen after this. False: a blocked thread still uses the services.
  virtual bool stop() = 0;
};

}  // namespace sluice::control
