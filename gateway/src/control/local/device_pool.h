// A storage pool of block devices of this node. Each volume uses a whole device. The device's label
// names its volume (control/local/device_label.h). The records, and the sockets for lock handover,
// are in a directory that all gateways of the node share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control/local/device_wipe.h"
#include "control/local/pool_directory.h"
#include "control/volume/storage_pool.h"

namespace sluice::control {

class DevicePool final : public StoragePool, public std::enable_shared_from_this<DevicePool> {
 public:
  struct Devices {
    std::vector<std::string> here;
    std::vector<std::string> taken_out = {};  // removed from the pool, but may still hold volumes
    Devices become(std::vector<std::string> now) const;
  };
  // Creates `directory` if necessary.
  static Result<std::shared_ptr<DevicePool>> open(Devices devices, const std::string& directory,
                                                  const std::string& incarnation,
                                                  HandoverServer::Asked asked);

  // --- StoragePool
  Result<std::shared_ptr<VolumeStorage>> storage_of(const wire::DesiredVolume& volume,
                                                    std::function<void()> wake) override;
  void run_job(const wire::Job& job, const JobServices& services,
               std::function<void(JobOutcome)> done) override;
  void observe(const std::string& uid, std::function<void(wire::PoolObserved)> done) override;

 private:
  DevicePool(Devices devices, std::shared_ptr<const PoolDirectory> home, std::string records)
      : devices_(std::move(devices.here)),
        taken_out_(std::move(devices.taken_out)),
        home_(std::move(home)),
        records_(std::move(records)) {}

  JobOutcome create(const wire::CreateImage& job) const;
  JobOutcome grow(const wire::ResizeImage& job) const;
  std::string replaced_device(const std::string& location) const;
  void remove(const wire::DeleteImage& job, const JobServices& services,
              std::function<void(JobOutcome)> done) const;
  JobOutcome list() const;
  Result<void> take(const SurveyedDevice& device, const std::string& location) const;

  const std::vector<std::string> devices_;
  const std::vector<std::string> taken_out_;
  const std::shared_ptr<const PoolDirectory> home_;
  const std::string records_;  // id of home_
};

}  // namespace sluice::control
