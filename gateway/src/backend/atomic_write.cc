#include "backend/atomic_write.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "backend/bounce.h"

namespace sluice::backend {
namespace {

// <linux/stat.h> of Linux 6.11; older headers (Debian 12's) have neither the bit nor the fields,
// but the structure has had its full size from the start.
constexpr unsigned kStatxWriteAtomic = 0x00010000;
constexpr size_t kUnitMinAt = 0xa8;
constexpr size_t kUnitMaxAt = 0xac;
constexpr size_t kSegmentsMaxAt = 0xb0;
static_assert(sizeof(struct statx) == 0x100 && offsetof(struct statx, stx_dev_minor) == 0x8c);

uint32_t field(const struct statx& status, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, reinterpret_cast<const uint8_t*>(&status) + at, sizeof value);
  return value;
}

}  // namespace

AtomicWrites choose_atomic_writes(uint32_t unit_min, uint32_t unit_max, uint32_t segments_max,
                                  uint32_t block_size) {
  if (unit_max == 0 || segments_max == 0) return {};
  // Unaligned data, or data in more pieces, must fit one bounce buffer.
  const uint32_t bytes = std::bit_floor(std::min(unit_max, BouncePool::kLargest));
  if (bytes < unit_min || bytes < block_size) return {};
  return {bytes, segments_max};
}

AtomicWrites atomic_writes_of(int fd, uint32_t block_size) {
  struct statx status = {};
  if (statx(fd, "", AT_EMPTY_PATH, kStatxWriteAtomic, &status) != 0 ||
      (status.stx_mask & kStatxWriteAtomic) == 0) {
    return {};
  }
  return choose_atomic_writes(field(status, kUnitMinAt), field(status, kUnitMaxAt),
                              field(status, kSegmentsMaxAt), block_size);
}

}  // namespace sluice::backend
