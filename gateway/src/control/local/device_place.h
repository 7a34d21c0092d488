// A volume on a block device of its own. Which one it is says the device's label; the record is in
// the directory that the node's gateways share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/local/device_label.h"
#include "control/local/node_place.h"

namespace sluice::control {

class DevicePlace final : public NodePlace {
 public:
  struct Where {
    std::vector<std::string> devices;  // of the pool
    std::string records;               // id of the directory that `home` is
  };
  DevicePlace(std::shared_ptr<LocalPool> home, Where where, std::string volume,
              std::string location);

  Opened open(const wire::DesiredVolume& volume) override;
  // What is for good is also said on the device: from now on the record in this directory counts.
  Result<Claim> claim(const Record& record, Outlasts outlasts) override;
  // Not where the volume was served last from a directory of records that is not this one: what
  // this one knows may be old.
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
