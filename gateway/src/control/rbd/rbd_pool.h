// A pool of Ceph, for the volumes of a cluster. It has one client (rbd/rados_client.h), shared with
// other pools of the same access, and opens images by it only once the control plane has recorded
// it (DESIGN R2; gateway/decisions/ceph.md):
//
//   connect -> asked to be recorded -> recorded: images may be opened
//      ^                                 |
//      +--- fenced: its images are lost for good, the next client begins anew
//
// Threads: any; nothing here waits for Ceph, workers do (rbd/workers.h).
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
#include "control_rbd/outlet.h"
#include "rbd/rados_client.h"
#include "rbd/workers.h"

namespace sluice::rbd {
class ServedImage;
}

namespace sluice::control {

class RbdPlace;

// What all pools of a process share.
struct RbdShared {
  Outlet outlet;
  // Jobs wait for each other only where they are of a kind and of a pool: what takes hours holds up
  // nothing, and nothing holds up a fence.
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
  Result<std::shared_ptr<Place>> place(const wire::DesiredVolume& volume,
                                       std::function<void()> wake) override;
  void run_job(const wire::Job& job, const JobServices& services,
               std::function<void(JobOutcome)> done) override;
  // `done` comes again when the pool has news.
  void look_at(const std::string& uid, std::function<void(wire::PoolObserved)> done) override;
  void tick() override;
  void expect(const wire::DesiredPool& desired) override;

  // --- its places' and jobs'
  // The pool as it is found by its name now, and whether it is the StoragePool's storage.
  struct Storage {
    std::shared_ptr<rbd::Pool> pool;
    Identified identified;
    uint32_t adoptions() const { return identified.marker ? identified.marker->adoptions : 0; }
  };
  // Compares the marker; waits for Ceph.
  Result<Storage> identify(rbd::RadosClient& client) const;
  ExpectedPool expected() const;
  // The pool by the client that is recorded; null: there is none yet. *problem: why not, where that
  // is known; *since: since when (CLOCK_BOOTTIME).
  std::shared_ptr<rbd::Pool> recorded(std::string* problem, Nanos* since) const;
  // The pool by a client that may not be recorded, for what opens no image. Waits for Ceph.
  Result<std::shared_ptr<rbd::Pool>> connected();
  const wire::DesiredRbdPool& desired() const { return desired_.rbd(); }
  const std::string& name() const { return name_; }  // pool or pool/namespace
  // Of workers, for what waits for this pool. A client's end is of the client's address, with what
  // tells that it is fenced: no pool that hangs holds that up.
  const std::string& group() const { return desired_.uid(); }
  const Holder& self() const { return self_; }
  Outlet& outlet() const { return shared_->outlet; }
  // The image at `location` as this gateway serves it; null: it doesn't.
  std::shared_ptr<rbd::ServedImage> served(const std::string& location);

  // While it lives, a job has the image at `location` open.
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
    Nanos since = 0;     // 0: nobody looks
    bool again = false;  // something changed since somebody began to look
  };
  void connect();
  void connect_now();
  void told(const std::string& client, ClientCommits::State state, const std::string& why);
  void client_gone(const std::string& client);
  void look();
  void look_now();
  wire::PoolObserved observe();
  std::vector<std::shared_ptr<RbdPlace>> places(const std::string* location = nullptr) const;
  void wake_places();

  const wire::DesiredPool desired_;
  const std::string name_;
  const backend::CephAccess access_;
  const Holder self_;
  ClientCommits& commits_;  // by the outlet only
  const std::shared_ptr<RbdShared> shared_;

  mutable std::mutex mutex_;
  std::shared_ptr<rbd::RadosClient> client_;
  std::shared_ptr<rbd::Pool> pool_;
  uint64_t commit_ = 0;  // of client_, as commits_ knows it
  bool recorded_ = false;
  bool connecting_ = false;
  std::string problem_;  // of connecting or of being recorded
  Nanos problem_since_ = 0;
  Nanos tried_ = 0;
  Looking looking_;
  ExpectedPool expected_;
  std::multimap<std::string, std::weak_ptr<RbdPlace>> places_;           // by location
  std::multimap<std::string, std::shared_ptr<std::atomic<bool>>> uses_;  // by location
};

// Pools of Ceph, for Client.
std::shared_ptr<PoolKind> rbd_pools();

}  // namespace sluice::control
