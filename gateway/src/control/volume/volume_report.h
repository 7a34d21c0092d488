// The last report of a volume to the control plane, and the problem that a report of a served
// volume tells. A report is repeated over each new stream, so it is kept.
//
// Reports reach the control plane in the order in which they are stored.
//
// Threads: send(), note_problem() and withdraw_lock() by the volume's step() only; the other
// members on any thread.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "control/volume/volume_services.h"
#include "control/wire.h"
#include "unit/medium_health.h"

namespace sluice::control {

class VolumeReport {
 public:
  explicit VolumeReport(VolumeServices& services) : services_(services) {}

  void send(const wire::VolumeObserved& observed);
  // Repeats the last report with this health of the medium, if it is of a served volume and had
  // another one. Without a step of the volume, because a step may wait for a medium that hangs.
  void send_medium(const lun::MediumHealth& health);
  // The lock is given up: a LOCKED report is not repeated. After a restore of the store an order of
  // the same number may come again, and the report would be treated as its answer.
  void withdraw_lock();
  // Why size, cache or QoS do not match the order.
  void note_problem(const Result<void>& done);

  // nullopt: nothing to report.
  std::optional<wire::VolumeObserved> last() const;
  bool answers(uint64_t order) const;  // the last report answers this order
  int64_t capacity() const;            // in the last report; 0: none
  // The last report is of a served volume, and its medium had another health then.
  bool differs_from(const lun::MediumHealth& health) const;
  std::string problem() const;  // empty: none

 private:
  bool differs_locked(const lun::MediumHealth& health) const;

  VolumeServices& services_;
  mutable std::mutex mutex_;
  std::optional<wire::VolumeObserved> last_;
  std::string problem_;
};

}  // namespace sluice::control
