// The provided-buffer ring that all connections of a reactor receive into (multishot recv).
//
// A few hot 64 KiB buffers from the reactor's pool. With incremental consumption (Linux 6.12) the
// kernel fills a buffer piece by piece, so small requests share one; without it each receive takes
// a whole buffer. Data leaves as slices that reference the buffer: it returns to the pool when the
// last command that needs it is done, and a fresh one takes its place at once.
#pragma once

#include <liburing.h>

#include <array>
#include <cstdint>

#include "base/buffer.h"
#include "base/limits.h"
#include "base/result.h"

namespace sluice::net {

class ReceiveRing {
 public:
  static constexpr int kGroup = 0;

  explicit ReceiveRing(BufferPool& pool) : pool_(pool) {}
  ~ReceiveRing();
  ReceiveRing(const ReceiveRing&) = delete;

  // Registers with the ring; reports whether incremental consumption is on.
  Result<bool> open(io_uring* ring);

  // The bytes of a receive completion. `flags` are the CQE's.
  Slice take(uint32_t bytes, uint32_t flags);

  // Fills empty places from the pool. Call once per batch; false when the ring has no buffer left.
  bool replenish();
  bool has_buffers() const { return filled_ > 0; }

 private:
  void provide(uint16_t id);

  BufferPool& pool_;
  io_uring* owner_ = nullptr;
  io_uring_buf_ring* ring_ = nullptr;
  bool incremental_ = false;
  std::array<BufferRef, limits::kReceiveBuffers> buffers_;
  std::array<uint32_t, limits::kReceiveBuffers> used_{};   // bytes the kernel has filled
  std::array<uint16_t, limits::kReceiveBuffers> empty_{};  // ids without a buffer
  unsigned empty_count_ = 0;
  unsigned filled_ = 0;
  uint16_t tail_ = 0;
};

}  // namespace sluice::net
