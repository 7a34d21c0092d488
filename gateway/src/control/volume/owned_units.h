// The production implementation of units.h, based on unit/ownership.h.
#pragma once

#include <memory>

#include "base/reactors.h"
#include "control/volume/units.h"
#include "unit/reservations/reservation_contract.h"

namespace sluice::control {

std::unique_ptr<Units> owned_units(Reactors& reactors,
                                   std::shared_ptr<lun::ReservationStore> store);

}  // namespace sluice::control
