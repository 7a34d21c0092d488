#include "control/local/local_pool.h"

#include <utility>

#include "control/local/file_storage.h"
#include "control/local/jobs.h"
#include "control/local/pool_observation.h"

namespace sluice::control {

bool LocalPool::is_current(const wire::DesiredPool& desired) {
  return directory_->is_current(desired);
}

Result<std::shared_ptr<VolumeStorage>> LocalPool::storage_of(const wire::DesiredVolume& volume,
                                                             std::function<void()> /*wake*/) {
  if (directory_->identified().foreign) return Error{directory_->identified().doubt};
  return std::shared_ptr<VolumeStorage>(
      std::make_shared<FileStorage>(directory_, volume.uid(), volume.location()));
}

void LocalPool::run_job(const wire::Job& job, const JobServices& services,
                        std::function<void(JobOutcome)> done) {
  const std::string& known = directory_->identified().doubt;
  const std::string doubt = known.empty() ? directory_->replaced() : known;
  if (!doubt.empty()) {
    return done(
        {.problem = "nothing is changed in storage that is not known to be the pool's: " + doubt});
  }
  done(control::run_job(*directory_, job, services.between));
}

void LocalPool::observe(const std::string& uid, std::function<void(wire::PoolObserved)> done) {
  done(control::observe(uid, *directory_));
}

}  // namespace sluice::control
