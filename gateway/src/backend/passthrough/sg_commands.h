// Translates backend requests into CDBs (SBC-4, Commands for direct access block devices). Pure
// functions.
#pragma once

#include <array>
#include <cstdint>

#include "backend/backend.h"
#include "passthrough/progress.h"
#include "passthrough/scsi_medium.h"

namespace sluice::passthrough {

struct SgTraits {
  ScsiMedium medium;                    // fixed while open, except for the number of blocks
  uint64_t max_transfer = 128 << 10;    // bytes, whole blocks
  bool discards_by_write_same = false;  // deallocates with WRITE SAME, so that zeros are promised
};

// `queue`: bytes that the sg driver accepts at once; 0: unknown.
SgTraits traits_of(const ScsiMedium& medium, uint64_t queue);

struct SgStep {
  std::array<uint8_t, 16> cdb{};
  uint8_t cdb_length = 0;
  bool to_device = false;  // false and `data` > 0: from the device
  uint32_t data = 0;       // bytes that are transferred
  uint64_t bytes = 0;      // bytes of the request that it completes
  Source source = Source::kNone;
  std::array<uint8_t, 24> list{};  // kList: the parameter list of UNMAP
  uint32_t timeout = 0;            // milliseconds, for the kernel
};

// The next command of a request. `durable`: must be on the medium when the request completes.
// `write_same`: false after the device has refused WRITE SAME.
SgStep next_step(backend::Io& io, const SgTraits& traits, bool durable, bool write_same);

// Whether a SYNCHRONIZE CACHE must follow after all data is transferred.
bool needs_flush(const backend::Io& io, const SgTraits& traits, bool durable);

}  // namespace sluice::passthrough
