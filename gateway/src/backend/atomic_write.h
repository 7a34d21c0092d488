// Writes that survive a power failure either completely or not at all, based on the kernel's
// "untorn writes" (Linux 6.11, statx(2) STATX_WRITE_ATOMIC, pwritev2(2) RWF_ATOMIC).
//
// The kernel accepts powers of two between a smallest and a largest unit, aligned to their size.
// SCSI can't express powers of two: the block limits VPD page (SBC-4 VPD B0) has a granularity, and
// permits any multiple of it. So only the largest size is offered: every size that VPD B0 permits
// is then accepted by the kernel.
#pragma once

#include <cerrno>
#include <cstdint>

#include "backend/backend.h"

namespace sluice::backend {

struct AtomicWrites {
  uint32_t bytes = 0;     // Info::atomic_write_bytes; 0: unsupported
  uint32_t segments = 0;  // maximum number of vectors of a write
};

// Chooses from the kernel's values, in bytes; `segments_max` is a count.
AtomicWrites choose_atomic_writes(uint32_t unit_min, uint32_t unit_max, uint32_t segments_max,
                                  uint32_t block_size);
// For a file or block device that was opened with O_DIRECT. All zeros if the kernel, the filesystem
// or the device does not support it.
AtomicWrites atomic_writes_of(int fd, uint32_t block_size);

// Checks a kWrite with kIoAtomic. Returns 0, or the negative errno of the refusal.
inline int refuse_atomic(const Io& io, uint32_t atomic_write_bytes) {
  if (atomic_write_bytes == 0) return -EOPNOTSUPP;
  return io.length == atomic_write_bytes && io.offset % atomic_write_bytes == 0 ? 0 : -EINVAL;
}

}  // namespace sluice::backend
