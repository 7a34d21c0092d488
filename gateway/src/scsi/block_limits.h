// Limits and features of one unit, shown in VPD pages B0, B1, B2, 86 and 8F and in READ CAPACITY.
// Filled by the unit from its backend and from base/limits.h; what is shown here is what the unit
// enforces. Counts are logical blocks unless said otherwise.
#pragma once

#include <cstdint>

namespace sluice::scsi {

struct BlockLimits {                  // VPD B0, SBC-4 §6.6.4
  bool write_same_non_zero = false;   // WSNZ: a NUMBER OF LOGICAL BLOCKS of 0 is refused
  uint8_t max_compare_and_write = 0;  // 0: COMPARE AND WRITE not supported
  uint16_t optimal_granularity = 0;   // OPTIMAL TRANSFER LENGTH GRANULARITY
  uint32_t max_transfer = 0;          // 0: no limit
  uint32_t optimal_transfer = 0;
  uint32_t max_prefetch = 0;
  uint32_t max_unmap_blocks = 0;  // 0: UNMAP not supported
  uint32_t max_unmap_descriptors = 0;
  uint32_t unmap_granularity = 0;
  bool unmap_alignment_valid = false;  // UGAVALID
  uint32_t unmap_alignment = 0;
  uint64_t max_write_same = 0;       // 0: no limit reported
  uint32_t max_atomic_transfer = 0;  // 0: WRITE ATOMIC not supported
  uint32_t atomic_alignment = 0;
  uint32_t atomic_granularity = 0;
};

struct BlockCharacteristics {  // VPD B1, SBC-4 §6.6.2
  bool rotational = false;
};

struct Provisioning {              // VPD B2, SBC-4 §6.6.7; READ CAPACITY(16)
  bool thin = false;               // LBPME, PROVISIONING TYPE 010b
  bool unmap = false;              // LBPU
  bool write_same_unmap = false;   // LBPWS (16) and LBPWS10
  bool reads_zeros = false;        // LBPRZ: unmapped blocks read as zeros
  bool anchor = false;             // ANC_SUP
  uint8_t threshold_exponent = 0;  // 0: no thresholds
};

struct Geometry {                       // READ CAPACITY, SBC-4 §5.20-5.21
  uint64_t blocks = 0;                  // capacity; at least 1
  uint32_t block_size = 512;            // logical, bytes
  uint32_t physical_block_size = 4096;  // bytes; a power of two multiple of block_size
  uint16_t lowest_aligned_lba = 0;
};

}  // namespace sluice::scsi
