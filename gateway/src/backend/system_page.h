#pragma once

#include <unistd.h>

#include <cstdint>

namespace sluice::backend {

// The unit in which this machine maps memory, in bytes: 4 KiB, or up to 64 KiB on arm64.
inline uint64_t page_size() {
  static const auto size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

struct PageRange {
  uint64_t begin = 0;  // bytes
  uint64_t end = 0;    // begin: no whole page
};

// The whole pages within [begin, end). madvise(2) rounds an end up, so a range that ends within a
// page reaches beyond it.
constexpr PageRange whole_pages(uint64_t begin, uint64_t end, uint64_t page) {
  const uint64_t first = (begin + page - 1) / page * page;
  const uint64_t last = end / page * page;
  return {first, first < last ? last : first};
}

}  // namespace sluice::backend
