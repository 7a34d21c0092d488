// Translates backend requests into commands of the NVM command set (NVM Command Set Specification
// 1.0, NVM Command Set Commands). Pure functions.
#pragma once

#include <linux/nvme_ioctl.h>

#include <cstdint>

#include "backend/backend.h"
#include "passthrough/nvme_identify.h"
#include "passthrough/progress.h"

namespace sluice::passthrough {

// The parameters of the commands; fixed while open.
struct NvmeTraits {
  uint32_t nsid = 0;
  uint32_t block_size = 512;          // bytes
  uint64_t max_transfer = 128 << 10;  // bytes, whole blocks
  uint64_t max_zeroes = 32 << 20;     // bytes of one Write Zeroes, whole blocks
  bool volatile_cache = false;
  bool deallocates = false;         // Dataset Management
  bool writes_zeroes = false;       // Write Zeroes
  bool discards_by_zeroes = false;  // deallocates with Write Zeroes, so that zeros are promised
};

// `zeroes_limit`: from parse_write_zeroes_limit(). `queue`: bytes that the kernel accepts at once.
NvmeTraits traits_of(uint32_t nsid, const NvmeController& controller, const NvmeNamespace& space,
                     uint64_t zeroes_limit, uint64_t queue);

// The range of Dataset Management in wire format (little-endian).
struct NvmeRange {
  uint32_t attributes = 0;
  uint32_t blocks = 0;
  uint64_t first = 0;
};

struct NvmeStep {
  nvme_uring_cmd command = {};  // without address and length of its data
  uint64_t bytes = 0;           // bytes of the request that it completes
  Source source = Source::kNone;
  NvmeRange range;  // kList
};

// The next command of a request. `durable`: must be on the medium when the request completes. The
// caller ensures that a kWrite fits the namespace, and never passes kCdb or kCheckFence.
NvmeStep next_step(backend::Io& io, const NvmeTraits& traits, bool durable);

// Whether a Flush must follow after all data is transferred.
bool needs_flush(const backend::Io& io, const NvmeTraits& traits, bool durable);

}  // namespace sluice::passthrough
