// The provided-buffer ring that all connections of a reactor receive into (multishot recv).
//
// A few hot 64 KiB buffers from the reactor's pool. With incremental consumption (Linux 6.12) the
// kernel fills a buffer piece by piece, so small requests share one; without it each receive uses a
// whole buffer. Data is passed on as slices that reference the buffer. The buffer returns to the
// pool when the last command that needs it is complete; a new one replaces it immediately.
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
  ~ReceiveRing() { close(); }
  ReceiveRing(const ReceiveRing&) = delete;

  // Registers with the ring; returns whether incremental consumption is available.
  Result<bool> open(io_uring* ring);
  // While the ring is open.
  void close();

  // The bytes of a receive completion with the CQE's `flags`.
  Slice take(uint32_t bytes, uint32_t flags);

  // Refills the ring from the pool. Call it once per batch. False: the ring has no buffers.
  bool replenish();
  bool has_buffers() const { return filled_ > 0; }

 private:
  void provide(uint16_t id);

  BufferPool& pool_;
  io_uring* owner_ = nullptr;
  io_uring_buf_ring* ring_ = nullptr;
  bool incremental_ = false;
  std::array<BufferRef, limits::kReceiveBuffers> buffers_;
  std::array<uint32_t, limits::kReceiveBuffers> used_{};   // bytes that the kernel has filled
  std::array<uint16_t, limits::kReceiveBuffers> empty_{};  // ids without a buffer
  unsigned empty_count_ = 0;
  unsigned filled_ = 0;
  uint16_t tail_ = 0;
};

}  // namespace sluice::net
