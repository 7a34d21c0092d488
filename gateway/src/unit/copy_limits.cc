#include "unit/copy_limits.h"

#include "base/limits.h"

namespace sluice::lun {

scsi::ThirdPartyCopyLimits copy_limits(uint32_t block_size) {
  scsi::ThirdPartyCopyLimits limits;
  limits.block_size = block_size;
  limits.granularity_log2 = static_cast<uint8_t>(__builtin_ctz(block_size));
  limits.max_segment_bytes = 65535u * block_size;
  limits.max_token_blocks = limits::kMaxCopyBytes / block_size;
  limits.optimal_token_blocks = limits.max_token_blocks;
  return limits;
}

}  // namespace sluice::lun
