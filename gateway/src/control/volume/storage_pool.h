// A storage pool, whatever its kind: where a volume's place is, who manages images and files, how
// the pool is found. Local pools are this room's own (local_pool.h); a kind that needs libraries of
// its own has a room of its own (rbd/), which main.cc gives in.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/volume/place.h"
#include "control/wire.h"

namespace sluice::control {

class ClientCommits;

// What became of a job (gateway_stream.proto, JobResult).
struct JobOutcome {
  std::string problem = {};              // empty: done
  bool unsupported = false;              // the pool can never do this
  int64_t size_bytes = 0;                // AdoptImage
  std::vector<std::string> images = {};  // ListImages
};

// Runs `task` while no command of the volume's hosts changes or reads anything; at once where this
// gateway doesn't serve it: `served` says which. Error: it could not be held in time.
using BetweenCommands =
    std::function<Result<void>(const std::string& volume, std::function<void(bool served)> task)>;

struct JobServices {
  BetweenCommands between;
  std::function<void(uint32_t permille)> progress;  // of a long job; any thread
  // Runs the task when the pool's other jobs have had their turns; not at all once the gateway
  // ends, and then the job comes again.
  std::function<void(std::function<void()> task)> again = {};
};

class StoragePool {
 public:
  virtual ~StoragePool() = default;
  // `wake`: of the place (place.h); called on any thread.
  virtual Result<std::shared_ptr<Place>> place(const wire::DesiredVolume& volume,
                                               std::function<void()> wake) = 0;
  // Each may come again: what is done already is done well. A pool on this node's disks may block
  // for as long as they take; `done` comes once, on any thread.
  virtual void run_job(const wire::Job& job, const JobServices& services,
                       std::function<void(JobOutcome)> done) = 0;
  // The pool as it is now; blocks and answers as run_job() does.
  virtual void look_at(const std::string& uid, std::function<void(wire::PoolObserved)> done) = 0;
  // About once a second.
  virtual void tick() {}
  // The control plane's newest word on the pool, which is in the same place as before.
  virtual void expect(const wire::DesiredPool& /*desired*/) {}
  // Whether this pool is still the one in `desired`. Otherwise the caller opens it again; open
  // volumes continue.
  virtual bool is_current(const wire::DesiredPool& /*desired*/) { return true; }
};

// What pools of such a kind need of the rest of this room.
struct PoolServices {
  ClientCommits& commits;
  std::string incarnation;
};

// Makes pools that this room doesn't know itself.
class PoolKind {
 public:
  virtual ~PoolKind() = default;
  virtual Result<std::shared_ptr<StoragePool>> open(const wire::DesiredPool& pool,
                                                    const PoolServices& services) = 0;
  // From here on nothing of it calls back. False: something hangs that uses what it was given.
  virtual bool stop() = 0;
};

}  // namespace sluice::control
