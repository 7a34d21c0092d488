// The services of the gateway that a volume uses.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "control/volume/volume_storage.h"
#include "control/wire.h"

namespace sluice::control {

// The answer to a request for the reservations of a volume.
struct Loaded {
  enum class What : uint8_t { kState, kFenced, kFailed } what = What::kFailed;
  lun::ReservationState state;
  uint64_t generation = 0;
  std::string why;
};

class VolumeServices {
 public:
  virtual ~VolumeServices() = default;
  // Error: why the pool can't be used. `wake`: of the storage.
  virtual Result<std::shared_ptr<VolumeStorage>> storage_of(const wire::DesiredVolume& volume,
                                                            std::function<void()> wake) = 0;
  // Loads reservations; linearizable. `beside`: the record beside the data; if it is newer than the
  // stored state, it is stored and returned. `settle`: an earlier process may have sent a commit of
  // this epoch that has not arrived yet.
  virtual void load(const Record& beside, uint64_t epoch, bool settle,
                    std::function<void(Loaded)> done) = 0;
  // From now on commits are accepted; each is also written beside the data with `update`.
  virtual void open_commits(Record record, std::shared_ptr<VolumeStorage> storage) = 0;
  virtual void close_commits(const std::string& volume) = 0;
  // Neither the control plane nor this gateway, the owner of a volume, is reached. Any thread.
  virtual bool is_cut_off_from(uint16_t owner) const = 0;
  virtual void report(const wire::VolumeObserved& observed) = 0;
};

}  // namespace sluice::control
