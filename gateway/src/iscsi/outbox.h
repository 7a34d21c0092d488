// Bytes on their way to one peer: headers in a small arena, payloads by reference, all sent with
// one gathered send per batch (DESIGN §5: one send per response costs six times as much).
//
//   protocol core  --header()/payload()-->  filling batch  --take()-->  sending batch  --sent()-->
//
// While one batch is in flight the next one fills; no memory of either moves.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"

namespace sluice::iscsi {

class Outbox {
 public:
  // `size` bytes (1..kArenaChunk) of 8-byte aligned memory that stays put until sent. The caller
  // fills them before the batch is taken.
  uint8_t* header(uint32_t size) {
    const uint32_t step = (size + 7) & ~7u;
    if (filling_.arena_left < step) next_chunk();
    uint8_t* p = filling_.arena_at;
    filling_.arena_at += step;
    filling_.arena_left -= step;
    append(p, size);
    return p;
  }
  // Queues a payload; its owner is held until it has been sent.
  void payload(Slice&& slice) {
    append(slice.data, slice.size);
    if (slice.owner) filling_.owners.push_back(std::move(slice.owner));
  }

  size_t bytes() const { return filling_.bytes + sending_.bytes; }
  bool in_flight() const { return in_flight_; }
  bool ready() const { return !in_flight_ && (filling_.bytes != 0 || sending_.bytes != 0); }
  bool empty() const { return bytes() == 0; }

  // The next vectors to send, at most `limit` of them; valid until sent(). Call when ready().
  std::span<iovec> take(size_t limit);
  // The carrier sent `n` bytes of what take() gave.
  void sent(size_t n);

  static constexpr uint32_t kArenaChunk = 4096;

 private:
  struct Batch {
    std::vector<iovec> vectors;
    std::vector<BufferRef> owners;
    std::vector<std::unique_ptr<uint8_t[]>> arena;
    size_t chunk = 0;  // chunks in use
    uint8_t* arena_at = nullptr;
    uint32_t arena_left = 0;
    size_t bytes = 0;  // not sent yet
    size_t first = 0;  // vectors already sent
    void clear();
  };
  void append(uint8_t* p, uint32_t n) {
    filling_.bytes += n;
    if (!filling_.vectors.empty()) {
      iovec& last = filling_.vectors.back();
      if (static_cast<uint8_t*>(last.iov_base) + last.iov_len == p) {
        last.iov_len += n;
        return;
      }
    }
    filling_.vectors.push_back({p, n});
  }
  void next_chunk();

  Batch filling_;
  Batch sending_;
  bool in_flight_ = false;
};

}  // namespace sluice::iscsi
