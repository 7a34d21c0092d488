// The lock of a volume's data, from the moment it is taken until the data is served. An owner
// claims the data with it: it loads the reservations, then writes the record that names the new
// owner (DESIGN R3, R8). Destruction releases the lock.
//
// Threads: the volume's strand.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "control/volume/volume_inbox.h"
#include "control/volume/volume_lifecycle.h"
#include "control/volume/volume_services.h"
#include "control/volume/volume_storage.h"
#include "control/wire.h"

namespace sluice::control {

class HeldLock {
 public:
  struct Setup {
    std::string volume;  // uid
    VolumeLifecycle& lifecycle;
    VolumeServices& services;
    std::weak_ptr<VolumeInbox> inbox;  // for the answer with the reservations
  };
  // Enters kLocked. `backend`: open, with the lock. `found`: the record beside the data.
  HeldLock(Setup setup, std::unique_ptr<backend::Backend> backend, Record found);

  enum class Outcome : uint8_t { kPending, kRetry, kFailed, kClaimed };
  struct Claimed {
    Outcome outcome = Outcome::kFailed;
    std::string problem = {};                             // kFailed
    std::unique_ptr<backend::Backend> backend = nullptr;  // kClaimed, with the lock
    Record record = {};                                   // kClaimed: as written
  };
  // Performs the steps that are possible now. kPending: call again when the inbox has mail. kRetry:
  // call again after limits::kLoadAgain. kClaimed is the last result.
  Claimed claim(const wire::DesiredVolume& order, VolumeStorage& storage);
  // The answer with the reservations for this epoch; ignored unless one is expected.
  void loaded(Loaded loaded);
  // A newer epoch is ordered: the claim starts again.
  void restart();

  // --- for assertions
  bool has_answer() const { return loaded_.has_value(); }
  bool is_claiming() const { return claim_.has_value(); }

 private:
  void request_load(uint64_t epoch);
  Claimed use(const Loaded& loaded, const wire::DesiredVolume& order, VolumeStorage& storage);
  void begin_claim(const wire::DesiredVolume& order, Holder self, uint64_t generation,
                   lun::ReservationState reservations);
  Claimed write(VolumeStorage& storage);

  const Setup setup_;
  std::unique_ptr<backend::Backend> backend_;
  const Record found_;
  std::optional<Loaded> loaded_;  // kLoading: until claim() uses it
  std::optional<Record> claim_;   // kClaiming: the record that is being written
};

}  // namespace sluice::control
