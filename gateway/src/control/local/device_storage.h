// A volume on a block device of its own. The device's label identifies the volume; the record is in
// the directory that the node's gateways share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/local/device_label.h"
#include "control/local/node_storage.h"

namespace sluice::control {

class DeviceStorage final : public NodeStorage {
 public:
  struct Where {
    std::vector<std::string> devices;  // of the pool
    std::string records;               // id of the directory `home`
  };
  DeviceStorage(std::shared_ptr<const PoolDirectory> home, Where where, std::string volume,
                std::string location);

  Opened open(const wire::DesiredVolume& volume) override;
  // A durable claim also marks the device: from now on the record in this directory counts.
  Result<Claim> claim(const Record& record, Outlasts outlasts) override;
  // False if the volume was last served with another directory of records: the record here may be
  // outdated.
  bool record_suffices() const override { return records_are_here_; }
  int64_t allocated_bytes() const override { return allocated_; }

 private:
  const Where where_;
  const std::string location_;
  std::string device_;  // path; empty: not found yet
  bool records_are_here_ = false;
  int64_t allocated_ = 0;
};

}  // namespace sluice::control
