// Checks whether a request is within a LUN.
#pragma once

#include <cstdint>

namespace sluice::backend {

inline bool within(uint64_t offset, uint64_t length, uint64_t size) {
  return length <= size && offset <= size - length;
}

}  // namespace sluice::backend
