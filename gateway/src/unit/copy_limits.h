// The limits of third-party copies.
#pragma once

#include <cstdint>

#include "scsi/third_party_copy_limits.h"

namespace sluice::lun {

// The values that VPD 8F and RECEIVE COPY RESULTS(OPERATING PARAMETERS) report and that the copies
// enforce. `block_size`: of the unit, in bytes.
scsi::ThirdPartyCopyLimits copy_limits(uint32_t block_size);

}  // namespace sluice::lun
