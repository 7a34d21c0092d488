// Requests of a backend as CDBs (SBC-4, Commands for direct access block devices). Pure.
#pragma once

#include <array>
#include <cstdint>

#include "backend/backend.h"
#include "passthrough/progress.h"
#include "passthrough/scsi_medium.h"

namespace sluice::passthrough {

struct SgTraits {
  ScsiMedium medium;                    // its sizes don't change while open, but for blocks
  uint64_t max_transfer = 128 << 10;    // bytes, whole blocks
  bool discards_by_write_same = false;  // deallocates with WRITE SAME, so that zeros are promised
};

// `queue`: bytes that the sg driver takes at once; 0: it doesn't say.
SgTraits traits_of(const ScsiMedium& medium, uint64_t queue);

struct SgStep {
  std::array<uint8_t, 16> cdb{};
  uint8_t cdb_length = 0;
  bool to_device = false;  // else from it, if `data` > 0
  uint32_t data = 0;       // bytes that are moved
  uint64_t bytes = 0;      // of the request, that it takes care of
  Source source = Source::kNone;
  std::array<uint8_t, 24> list{};  // kList: UNMAP's
  uint32_t timeout = 0;            // milliseconds, for the kernel
};

// The next command of a request. `durable`: must be on the medium when the request is complete.
// `write_same`: false once the device has refused WRITE SAME.
SgStep next_step(backend::Io& io, const SgTraits& traits, bool durable, bool write_same);

// Whether a SYNCHRONIZE CACHE must follow once all data is done.
bool needs_flush(const backend::Io& io, const SgTraits& traits, bool durable);

}  // namespace sluice::passthrough
