// Creates logical units and controls their roles (unit/ownership.h). It is an interface, so that
// tests of a volume need no SCSI commands.
#pragma once

#include <memory>

#include "control/volume/logical_unit_control.h"
#include "unit/unit.h"

namespace sluice::control {

class Units {
 public:
  virtual ~Units() = default;
  // The unit has no backend yet; its state is Transitioning.
  virtual std::shared_ptr<lun::Unit> open(const lun::UnitIdentity& identity,
                                          const wire::DesiredVolume& volume) = 0;
  // `self`: number of this gateway.
  virtual std::unique_ptr<LogicalUnitControl> control_of(const std::shared_ptr<lun::Unit>& unit,
                                                         uint16_t self) = 0;
};

}  // namespace sluice::control
