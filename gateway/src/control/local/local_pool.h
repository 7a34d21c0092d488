// A storage pool whose volumes are files in a directory of this node (pool_directory.h).
#pragma once

#include <memory>
#include <string>

#include "control/local/pool_directory.h"
#include "control/volume/storage_pool.h"

namespace sluice::control {

class LocalPool final : public StoragePool {
 public:
  explicit LocalPool(std::shared_ptr<const PoolDirectory> directory)
      : directory_(std::move(directory)) {}

  // --- StoragePool
  Result<std::shared_ptr<VolumeStorage>> storage_of(const wire::DesiredVolume& volume,
                                                    std::function<void()> wake) override;
  void run_job(const wire::Job& job, const JobServices& services,
               std::function<void(JobOutcome)> done) override;
  void observe(const std::string& uid, std::function<void(wire::PoolObserved)> done) override;
  bool is_current(const wire::DesiredPool& desired) override;

 private:
  const std::shared_ptr<const PoolDirectory> directory_;
};

}  // namespace sluice::control
