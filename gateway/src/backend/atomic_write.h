// Writes that survive power loss whole or not at all, as far as the kernel vouches for them: its
// "untorn writes" (Linux 6.11, statx(2) STATX_WRITE_ATOMIC, pwritev2(2) RWF_ATOMIC).
//
// The kernel takes any power of two between a least and a largest unit, at a multiple of itself.
// SCSI can't say "powers of two" (SBC-4 VPD B0: a granularity, and any multiple of it), so one size
// is offered, the largest: what a host may send by VPD B0 is then what the kernel takes.
#pragma once

#include <cerrno>
#include <cstdint>

#include "backend/backend.h"

namespace sluice::backend {

struct AtomicWrites {
  uint32_t bytes = 0;     // Info::atomic_write_bytes; 0: none
  uint32_t segments = 0;  // vectors a write may consist of
};

// From what the kernel says (bytes, but for the segments).
AtomicWrites choose_atomic_writes(uint32_t unit_min, uint32_t unit_max, uint32_t segments_max,
                                  uint32_t block_size);
// Of a file or block device opened with O_DIRECT. None where the kernel, the filesystem or the
// device knows of none.
AtomicWrites atomic_writes_of(int fd, uint32_t block_size);

// Of a kWrite with kIoAtomic: 0, or the negative errno it is refused with.
inline int refuse_atomic(const Io& io, uint32_t atomic_write_bytes) {
  if (atomic_write_bytes == 0) return -EOPNOTSUPP;
  return io.length == atomic_write_bytes && io.offset % atomic_write_bytes == 0 ? 0 : -EINVAL;
}

}  // namespace sluice::backend
