// A Ceph pool of a cluster. It has one client (rbd/rados_client.h), which pools with the same
// access share. It opens images only after the control plane has recorded the client (DESIGN R2;
// gateway/decisions/ceph.md).
//
// 1. It connects and requests that the client is recorded.
// 2. Recorded: images may be opened.
// 3. Fenced: the client's images are permanently lost. The pool starts again with a new client.
//
// Threads: any. No function waits for Ceph unless its comment says so; workers do (rbd/workers.h).
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "control/client_commits.h"
#include "control/local/pool_marker.h"
#include "control/volume/storage_pool.h"
#include "control_rbd/callback_gate.h"
#include "rbd/rados_client.h"
#include "rbd/workers.h"

namespace sluice::rbd {
class ServedImage;
}

namespace sluice::control {

class RbdStorage;

// Shared by all pools of a process.
struct RbdShared {
  CallbackGate callbacks;
  // Separate workers per kind of job, and within them per pool, so that long jobs delay no others
  // and nothing delays fencing.
  rbd::Workers jobs{limits::kImageJobThreads};
  rbd::Workers long_jobs{limits::kImageJobThreads};
  rbd::Workers fences{limits::kImageJobThreads};
};

class RbdPool final : public StoragePool, public std::enable_shared_from_this<RbdPool> {
 public:
  RbdPool(wire::DesiredPool desired, const PoolServices& services,
          std::shared_ptr<RbdShared> shared);
  ~RbdPool() override;

  void begin();

  // --- StoragePool
  Result<std::shared_ptr<VolumeStorage>> storage_of(const wire::DesiredVolume& volume,
                                                    std::function<void()> wake) override;
  void run_job(const wire::Job& job, const JobServices& services,
               std::function<void(JobOutcome)> done) override;
  // `done` runs again when the pool changes.
  void observe(const std::string& uid, std::function<void(wire::PoolObserved)> done) override;
  void tick() override;
  void expect(const wire::DesiredPool& desired) override;

  // --- called by its storages and jobs
  // The pool that has the configured name now, and whether it is the StoragePool's storage.
  struct Storage {
    std::shared_ptr<rbd::Pool> pool;
    Identified identified;
    uint32_t adoptions() const { return identified.marker ? identified.marker->adoptions : 0; }
  };
  // Reads and compares the marker; waits for Ceph.
  Result<Storage> identify(rbd::RadosClient& client) const;
  ExpectedPool expected() const;
  // The pool as the recorded client uses it; null: none is recorded yet. *problem: the reason, if
  // known; *since: since when (CLOCK_BOOTTIME, nanoseconds).
  std::shared_ptr<rbd::Pool> recorded(std::string* problem, Nanos* since) const;
  // The pool as any client uses it, recorded or not, for work that opens no image. Waits for Ceph.
  Result<std::shared_ptr<rbd::Pool>> connected();
  const wire::DesiredRbdPool& desired() const { return desired_.rbd(); }
  const std::string& name() const { return name_; }  // pool or pool/namespace
  // Group of the workers that wait for this pool. The end of a client uses the group of its
  // address, as fencing notices do, so that a pool that hangs delays neither.
  const std::string& group() const { return desired_.uid(); }
  const Holder& self() const { return self_; }
  CallbackGate& callbacks() const { return shared_->callbacks; }
  // The image at `location` that this gateway serves; null: it does not.
  std::shared_ptr<rbd::ServedImage> served(const std::string& location);

  // Registers that a job has the image at `location` open, until destruction.
  class Use {
   public:
    Use(std::shared_ptr<RbdPool> pool, std::string location);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    bool stopped() const { return *stopped_; }  // the image is needed elsewhere

   private:
    const std::shared_ptr<RbdPool> pool_;
    const std::string location_;
    const std::shared_ptr<std::atomic<bool>> stopped_;
  };
  void stop_uses(const std::string& location);
  bool is_used(const std::string& location) const;

 private:
  struct Looking {
    std::string uid;
    std::function<void(wire::PoolObserved)> done;
    Nanos since = 0;     // start of the probe; 0: none
    bool again = false;  // something changed since the probe began
  };
  void connect();
  void connect_now();
  void on_client_state(const std::string& client, ClientCommits::State state,
                       const std::string& why);
  void client_gone(const std::string& client);
  void look();
  void look_now();
  wire::PoolObserved observe();
  std::vector<std::shared_ptr<RbdStorage>> storages(const std::string* location = nullptr) const;
  void wake_storages();

  const wire::DesiredPool desired_;
  const std::string name_;
  const backend::CephAccess access_;
  const Holder self_;
  ClientCommits& commits_;  // used through callbacks() only
  const std::shared_ptr<RbdShared> shared_;

  mutable std::mutex mutex_;
  std::shared_ptr<rbd::RadosClient> client_;
  std::shared_ptr<rbd::Pool> pool_;
  uint64_t commit_ = 0;  // handle of client_ in commits_
  bool recorded_ = false;
  bool connecting_ = false;
  std::string problem_;  // from connecting or recording
  Nanos problem_since_ = 0;
  Nanos tried_ = 0;
  Looking looking_;
  ExpectedPool expected_;
  std::multimap<std::string, std::weak_ptr<RbdStorage>> storages_;       // by location
  std::multimap<std::string, std::shared_ptr<std::atomic<bool>>> uses_;  // by location
};

// Creates Ceph pools for Client.
std::shared_ptr<PoolKind> rbd_pools();

}  // namespace sluice::control
