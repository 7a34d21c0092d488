// Logical units as this room makes them and hands them their roles (unit/ownership.h), behind an
// interface so that a volume's life can be tested without commands.
#pragma once

#include <memory>

#include "control/volume/volume.h"
#include "unit/unit.h"

namespace sluice::control {

class Units {
 public:
  virtual ~Units() = default;
  // Without a backend, Transitioning.
  virtual std::shared_ptr<lun::Unit> open(const lun::UnitIdentity& identity,
                                          const wire::DesiredVolume& volume) = 0;
  // `self`: number of this gateway.
  virtual std::unique_ptr<UnitDoor> door(const std::shared_ptr<lun::Unit>& unit, uint16_t self) = 0;
};

}  // namespace sluice::control
