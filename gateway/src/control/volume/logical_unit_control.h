// Controls the unit of one volume (unit/ownership.h). It is an interface, so that tests of a volume
// need no SCSI commands.
//
// Threads: one at a time; callbacks run on any thread.
#pragma once

#include <functional>
#include <memory>

#include "backend/backend.h"
#include "control/wire.h"
#include "unit/medium_health.h"
#include "unit/reservations/reservations.h"
#include "unit/role.h"

namespace sluice::control {

class LogicalUnitControl {
 public:
  virtual ~LogicalUnitControl() = default;
  virtual void serve(std::unique_ptr<backend::Backend> backend, lun::ReservationState state,
                     uint64_t epoch) = 0;
  virtual void follow(const lun::Role& role) = 0;
  virtual void release(std::function<void(bool flushed)> done) = 0;
  virtual void fence(std::function<void()> done) = 0;
  // Applies size, write cache and QoS of `volume`; `serving`: the unit has a backend.
  virtual Result<void> shape(const wire::DesiredVolume& volume, bool serving) = 0;
  // Of the backend in use, as of the last health check.
  virtual lun::MediumHealth medium_health() const { return {}; }
};

}  // namespace sluice::control
