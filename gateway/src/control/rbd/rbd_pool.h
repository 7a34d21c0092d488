// A Ceph pool of a cluster: images that hold volumes (rbd_storage.h), jobs (rbd_jobs.h) and reports
// (rbd_pool_probe.h), all by one client (pool_client.h).
//
// Threads: any. No function waits for Ceph; the threads of rbd::ceph_executor() and of RbdShared
// do.
#pragma once

#include <memory>
#include <string>

#include "base/executor.h"
#include "base/limits.h"
#include "control/volume/callback_gate.h"
#include "control/volume/storage_pool.h"
#include "control_rbd/open_images.h"
#include "control_rbd/pool_client.h"
#include "control_rbd/rbd_pool_probe.h"

namespace sluice::control {

// Shared by all pools of a process.
struct RbdShared {
  const std::shared_ptr<CallbackGate> callbacks = std::make_shared<CallbackGate>();
  static constexpr Executor::Setup kThreads{.threads = limits::kImageJobThreads,
                                            .queued_tasks = limits::kMaxImageTasks,
                                            .at_end = Executor::AtEnd::kRunQueued,
                                            .destructor_waits = limits::kImageCloses};
  // An executor for each kind of job, with a group for each pool, so that long jobs delay no others
  // and nothing delays fencing.
  Executor jobs{kThreads};
  Executor long_jobs{kThreads};
  Executor fences{kThreads};
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
