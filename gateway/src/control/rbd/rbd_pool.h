// A Ceph pool of a cluster: images that hold volumes (rbd_storage.h), jobs (rbd_jobs.h) and reports
// (rbd_pool_probe.h), all by one client (pool_client.h).
//
// Threads: any. No function waits for Ceph; workers do (rbd/workers.h).
#pragma once

#include <memory>
#include <string>

#include "control/volume/storage_pool.h"
#include "control_rbd/callback_gate.h"
#include "control_rbd/open_images.h"
#include "control_rbd/pool_client.h"
#include "control_rbd/rbd_pool_probe.h"
#include "rbd/workers.h"

namespace sluice::control {

// Shared by all pools of a process.
struct RbdShared {
  const std::shared_ptr<CallbackGate> callbacks = std::make_shared<CallbackGate>();
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

  // --- StoragePool
  Result<std::shared_ptr<VolumeStorage>> storage_of(const wire::DesiredVolume& volume,
                                                    std::function<void()> wake) override;
  void run_job(const wire::Job& job, const JobServices& services,
               std::function<void(JobOutcome)> done) override;
  // `done` runs again when the pool changes.
  void observe(const std::string& uid, std::function<void(wire::PoolObserved)> done) override;
  void tick() override { client_->tick(); }
  void expect(const wire::DesiredPool& desired) override { client_->expect(desired); }

 private:
  const std::shared_ptr<RbdShared> shared_;
  const std::shared_ptr<OpenImages> images_ = std::make_shared<OpenImages>();
  const std::shared_ptr<PoolClient> client_;
  const std::shared_ptr<RbdPoolProbe> probe_;
};

// Creates Ceph pools for Client.
std::shared_ptr<PoolKind> rbd_pools();

}  // namespace sluice::control
