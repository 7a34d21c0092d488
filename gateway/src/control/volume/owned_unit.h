// The unit of a volume, controlled by unit/ownership.h.
//
// Threads: one at a time for each unit; callbacks run on any thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "base/reactors.h"
#include "control/volume/logical_unit_control.h"
#include "unit/bandwidth.h"
#include "unit/reservations/reservation_contract.h"
#include "unit/unit.h"

namespace sluice::control {

class OwnedUnit final : public LogicalUnitControl {
 public:
  // What all units of a gateway use. Volumes run on several threads, but unit/ownership.h permits
  // one call at a time.
  struct Shared {
    Reactors& reactors;
    std::shared_ptr<lun::ReservationStore> store;
    std::mutex role_changes{};
  };
  // The unit has no backend yet; its state is Transitioning. `self`: number of this gateway.
  OwnedUnit(const lun::UnitIdentity& identity, const wire::DesiredVolume& volume, Shared& shared,
            uint16_t self);

  const std::shared_ptr<lun::Unit>& unit() const { return unit_; }

  // --- LogicalUnitControl
  void serve(std::unique_ptr<backend::Backend> backend, lun::ReservationState state,
             uint64_t epoch) override;
  void follow(const lun::Role& role) override;
  void release(std::function<void(bool)> done) override;
  void fence(std::function<void()> done) override;
  Result<void> shape(const wire::DesiredVolume& volume, bool serving) override;
  lun::MediumHealth medium_health() const override { return unit_->medium_health(); }

 private:
  Result<void> order_cache(bool on);

  Shared& shared_;
  const uint16_t self_;
  const std::shared_ptr<lun::Unit> unit_;
  lun::Qos qos_;
  std::optional<bool> cache_;  // as last ordered
};

}  // namespace sluice::control
