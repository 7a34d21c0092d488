// A volume in a file of a local pool. Its lock is the flock of the description that does the I/O.
#pragma once

#include <memory>
#include <string>

#include "control/local/node_storage.h"

namespace sluice::control {

class FileStorage final : public NodeStorage {
 public:
  // `location`: path of the file below the pool's directory.
  FileStorage(std::shared_ptr<const PoolDirectory> pool, std::string volume, std::string location)
      : NodeStorage(std::move(pool), std::move(volume)), location_(std::move(location)) {}

  Opened open(const wire::DesiredVolume& volume) override;
  int64_t allocated_bytes() const override;

 private:
  Result<backend::Spec> spec_of(const wire::DesiredVolume& volume) const;
  Opened verified(std::unique_ptr<backend::Backend> backend) const;
  bool is_held() const;

  const std::string location_;
};

}  // namespace sluice::control
