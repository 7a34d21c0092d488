// The identity of a logical unit, independent of its backend.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace sluice::lun {

// Immutable for the life of the volume (DESIGN R13).
struct UnitIdentity {
  std::array<uint8_t, 16> uuid{};
  std::string serial;              // VPD 80; derived from the UUID
  std::string product = "VOLUME";  // at most 16 characters
  uint32_t oui = 0;                // 24 bits; 0: NAA 3 (locally assigned) else NAA 6
  uint32_t block_size = 512;       // logical, bytes: 512 or 4096
  uint32_t physical_block_size = 4096;
};

// The reported properties of a volume that this gateway has not opened.
struct Shape {
  uint64_t size_bytes = 0;
  bool write_cache = false;
};

}  // namespace sluice::lun
