// READ CAPACITY(10) and (16) (SBC-4 §5.20, §5.21).
#pragma once

#include "base/bytes.h"
#include "scsi/block_limits.h"

namespace sluice::scsi {

// 8 bytes; RETURNED LOGICAL BLOCK ADDRESS is FFFFFFFFh when it doesn't fit.
size_t build_read_capacity_10(const Geometry& geometry, MutableBytes out);
// 32 bytes.
size_t build_read_capacity_16(const Geometry& geometry, const Provisioning& provisioning,
                              MutableBytes out);

}  // namespace sluice::scsi
