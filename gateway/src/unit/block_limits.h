// The limits of READ, WRITE, UNMAP and WRITE SAME (SBC-4 §6.6.4, VPD page B0h).
#pragma once

#include "backend/backend.h"
#include "scsi/block_limits.h"
#include "unit/unit_identity.h"

namespace sluice::lun {

// The values that VPD page B0h reports and that the handlers enforce. `unmap`: whether the unit
// supports UNMAP; if it does not, the limits of UNMAP are 0.
scsi::BlockLimits block_limits(const UnitIdentity& identity, const backend::Info& info, bool unmap);

}  // namespace sluice::lun
