#include "unit/block_limits.h"

#include <algorithm>
#include <cstdint>

#include "base/limits.h"

namespace sluice::lun {
namespace {

uint32_t saturated(uint64_t v) { return static_cast<uint32_t>(std::min<uint64_t>(v, UINT32_MAX)); }

}  // namespace

scsi::BlockLimits block_limits(const UnitIdentity& identity, const backend::Info& info,
                               bool unmap) {
  const uint32_t block = identity.block_size;
  scsi::BlockLimits l;
  // Writing one pattern over the whole medium could exceed a host's timeout. The size is limited,
  // so 0 for "the rest of the medium" would fail on most volumes and is refused.
  l.write_same_non_zero = true;
  l.max_write_same = limits::kMaxWriteSameBytes / block;
  l.max_compare_and_write = limits::kMaxCompareAndWriteBlocks;
  l.optimal_granularity = static_cast<uint16_t>(std::max(1u, identity.physical_block_size / block));
  l.max_transfer = limits::kMaxTransferBytes / block;
  l.optimal_transfer = limits::kOptimalTransferBytes / block;
  if (unmap) {
    l.max_unmap_blocks = saturated(limits::kMaxUnmapBytes / block);
    l.max_unmap_descriptors = limits::kMaxUnmapDescriptors;
    l.unmap_granularity = std::max(1u, info.discard_granularity / block);
    l.unmap_alignment_valid = true;
    l.unmap_alignment = static_cast<uint32_t>(info.discard_alignment / block);
  }
  // SBC-4 §4.29, VPD B0: one size, at multiples of itself (backend/atomic_write.h says why).
  if (info.atomic_write_bytes >= block && info.atomic_write_bytes <= limits::kMaxTransferBytes) {
    const uint32_t atomic = info.atomic_write_bytes / block;
    l.max_atomic_transfer = l.atomic_alignment = l.atomic_granularity = atomic;
  }
  return l;
}

}  // namespace sluice::lun
