// A unit attention condition (SAM-5 §5.14), by its additional sense code (SPC-5 §4.5.6).
#pragma once

#include <cstdint>

namespace sluice::lun {

struct UnitAttention {
  uint8_t asc = 0;
  uint8_t ascq = 0;
  bool operator==(const UnitAttention&) const = default;
};

inline constexpr UnitAttention kCapacityChanged{0x2a, 0x09};  // CAPACITY DATA HAS CHANGED

}  // namespace sluice::lun
