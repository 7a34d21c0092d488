// Parameter data of GET LBA STATUS(16) (SBC-4 §5.6).
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace sluice::scsi {

enum class Mapping : uint8_t {  // PROVISIONING STATUS
  kMapped = 0,
  kDeallocated = 1,
  kAnchored = 2,
};

struct LbaStatus {
  uint64_t lba = 0;
  uint32_t blocks = 0;
  Mapping mapping = Mapping::kMapped;
};

// How many descriptors an allocation length has room for; at least 1 is always worth gathering.
constexpr size_t lba_status_capacity(uint32_t allocation_length) {
  return allocation_length < 24 ? 1 : (allocation_length - 8) / 16;
}

size_t build_lba_status(std::span<const LbaStatus> extents, MutableBytes out);

}  // namespace sluice::scsi
