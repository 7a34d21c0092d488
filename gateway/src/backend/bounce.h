// Aligned buffers for direct I/O on unaligned memory, for example data that arrived behind a
// 48-byte PDU header.
//
// Bound: buffers in use are at most twice the bytes in flight, which the sessions limit (DESIGN
// R14). At most kKeptPerClass buffers of each size are kept for reuse.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <mutex>

namespace sluice::backend {

struct Bounce {
  uint8_t* data = nullptr;  // 4096-byte aligned
  uint32_t capacity = 0;    // bytes
  uint32_t size_class = 0;
  Bounce* next = nullptr;
};

class BouncePool {
 public:
  static constexpr uint32_t kSmallest = 4096;
  static constexpr uint32_t kClasses = 7;
  static constexpr uint32_t kLargest = kSmallest << (kClasses - 1);  // bytes: 256 KiB

  BouncePool() = default;
  BouncePool(const BouncePool&) = delete;
  BouncePool& operator=(const BouncePool&) = delete;
  ~BouncePool();

  // Returns a buffer of at least min(size, kLargest) bytes; nullptr: out of memory. Any thread.
  Bounce* take(uint64_t size);
  void give_back(Bounce* bounce);

 private:
  static constexpr uint32_t kKeptPerClass = 64;
  struct FreeList {
    Bounce* head = nullptr;
    uint32_t length = 0;
  };
  std::mutex mutex_;
  std::array<FreeList, kClasses> free_;
};

// Copy between a bounce buffer and the first `length` bytes of an iovec list.
void gather(const iovec* iov, uint64_t length, uint8_t* to);
void scatter(const uint8_t* from, const iovec* iov, uint64_t length);

}  // namespace sluice::backend
