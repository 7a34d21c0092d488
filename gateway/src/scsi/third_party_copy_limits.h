// Limits of the copy manager of a logical unit (SPC-5 §5.18, §7.7.17).
#pragma once

#include <cstdint>

#include "base/limits.h"

namespace sluice::scsi {

struct ThirdPartyCopyLimits {
  // EXTENDED COPY(LID1), also in RECEIVE COPY RESULTS(OPERATING PARAMETERS)
  uint16_t max_cscds = limits::kMaxCopyTargets;
  uint16_t max_segments = limits::kMaxCopySegments;
  uint32_t max_segment_bytes = 65535u * 512;  // what a 16-bit block count reaches
  uint16_t total_concurrent = 16;
  uint16_t max_concurrent = 16;
  uint8_t granularity_log2 = 9;  // logical block size
  uint16_t hold_seconds = 60;    // results are kept at least that long
  // tokens (ODX)
  uint16_t max_ranges = 64;       // block device range descriptors per command
  uint64_t max_token_blocks = 0;  // MAXIMUM TOKEN TRANSFER SIZE; 0: not limited
  uint64_t optimal_token_blocks = 0;
  uint32_t default_inactivity_seconds = 30;
  uint32_t max_inactivity_seconds = 120;
  uint32_t max_token_lifetime_seconds = 600;
  uint32_t block_size = 512;  // to give token limits in bytes too
};

}  // namespace sluice::scsi
