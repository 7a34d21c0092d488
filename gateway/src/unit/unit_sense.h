// Sense data that follows from the state of a unit alone.
#pragma once

#include "scsi/sense.h"
#include "unit/role.h"

namespace sluice::lun {

class Unit;

// The unit is not ready: 02/04/02 when stopped, else 02/04/00.
scsi::Sense not_ready_sense(const Unit& unit);

// The unit is write-protected: 07/27/00 by its backend, else 07/27/02 by SWP.
scsi::Sense write_protected_sense(const Unit& unit);

// This gateway can't reach the unit: 02/04/0A, or 02/04/0C if it is unavailable.
scsi::Sense inaccessible(Standing standing);

}  // namespace sluice::lun
