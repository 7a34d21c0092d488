// The limits of third-party copies.
#pragma once

#include <cstdint>

#include "scsi/third_party_copy.h"

namespace sluice::lun {

// As VPD 8F and RECEIVE COPY RESULTS(OPERATING PARAMETERS) show them, and as the copies enforce
// them. `block_size`: bytes, of the unit.
scsi::ThirdPartyCopyLimits copy_limits(uint32_t block_size);

}  // namespace sluice::lun
