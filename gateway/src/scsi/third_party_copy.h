// VPD page 8Fh (SPC-5 §7.7.17): the copies that the unit's copy manager supports, and their limits.
#pragma once

#include "base/bytes.h"
#include "scsi/command_table.h"
#include "scsi/third_party_copy_limits.h"

namespace sluice::scsi {

size_t build_third_party_copy_page(uint8_t peripheral, const ThirdPartyCopyLimits& limits,
                                   const Support& support, MutableBytes out);

}  // namespace sluice::scsi
