// VPD pages B0h, B1h and B2h of block devices (SBC-4 §6.6).
#pragma once

#include "base/bytes.h"
#include "scsi/block_limits.h"

namespace sluice::scsi {

size_t build_block_limits_page(uint8_t peripheral, const BlockLimits& limits, MutableBytes out);
size_t build_characteristics_page(uint8_t peripheral, const BlockCharacteristics& c,
                                  MutableBytes out);
size_t build_provisioning_page(uint8_t peripheral, const Provisioning& p, MutableBytes out);

}  // namespace sluice::scsi
