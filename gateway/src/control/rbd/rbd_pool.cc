#include "control_rbd/rbd_pool.h"

#include <utility>

#include "control_rbd/rbd_jobs.h"
#include "control_rbd/rbd_storage.h"

namespace sluice::control {

RbdPool::RbdPool(wire::DesiredPool desired, const PoolServices& services,
                 std::shared_ptr<RbdShared> shared)
    : shared_(std::move(shared)),
      client_(
          std::make_shared<PoolClient>(std::move(desired), services, shared_->callbacks, images_)),
      probe_(std::make_shared<RbdPoolProbe>(client_)) {
  client_->begin([weak = std::weak_ptr(probe_)] {
    if (const auto probe = weak.lock()) probe->probe();
  });
}

Result<std::shared_ptr<VolumeStorage>> RbdPool::storage_of(const wire::DesiredVolume& volume,
                                                           std::function<void()> wake) {
  if (volume.location().empty() || volume.location().find_first_of("/@") != std::string::npos) {
    return Error{"\"" + volume.location() + "\" is no name of an image"};
  }
  // The storage owns the whole pool with its client, because the pool's ticks wake the storage.
  auto storage =
      std::make_shared<RbdStorage>(std::shared_ptr<PoolClient>(shared_from_this(), client_.get()),
                                   images_, volume, std::move(wake));
  images_->add(volume.location(), storage);
  return std::shared_ptr<VolumeStorage>(std::move(storage));
}

void RbdPool::run_job(const wire::Job& job, const JobServices& services,
                      std::function<void(JobOutcome)> done) {
  Executor* executor = &shared_->jobs;
  if (job.has_fence_clients()) executor = &shared_->fences;
  if (job.has_flatten() || job.has_roll_back() || job.has_delete_()) executor = &shared_->long_jobs;
  const bool posted =
      executor->try_post({client_->group()}, [self = shared_from_this(), job, services, done] {
        JobOutcome outcome = run_rbd_job(self->client_, self->images_, job, [&](uint32_t permille) {
          self->client_->callbacks().run([&] { services.progress(permille); });
        });
        self->client_->callbacks().run([&] { done(std::move(outcome)); });
      });
  if (!posted) done({.problem = "too many jobs wait for Ceph already; try again"});
}

void RbdPool::observe(const std::string& uid, std::function<void(wire::PoolObserved)> done) {
  probe_->observe(uid, std::move(done));
}

// --- the kind

namespace {

class RbdPools final : public PoolKind {
 public:
  Result<std::shared_ptr<StoragePool>> open(const wire::DesiredPool& pool,
                                            const PoolServices& services) override {
    if (pool.rbd().pool().empty()) return Error{"a pool of Ceph needs the name of its pool"};
    if (pool.rbd().monitors().empty()) return Error{"a pool of Ceph needs addresses of monitors"};
    return std::shared_ptr<StoragePool>(std::make_shared<RbdPool>(pool, services, shared_));
  }

  bool stop() override {
    shared_->callbacks->close();
    bool quiet = true;
    for (Executor* executor : {&shared_->jobs, &shared_->long_jobs, &shared_->fences}) {
      quiet = executor->stop(kPatience) && quiet;
    }
    return quiet;
  }

 private:
  static constexpr Nanos kPatience = kSecond;
  const std::shared_ptr<RbdShared> shared_ = std::make_shared<RbdShared>();
};

}  // namespace

std::shared_ptr<PoolKind> rbd_pools() { return std::make_shared<RbdPools>(); }

}  // namespace sluice::control
