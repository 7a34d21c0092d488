// Output for one peer: headers in a small arena, payloads by reference. One gathered send per batch
// transmits it (DESIGN §5: one send per response costs six times as much).
//
//   protocol core  --begin()/header()/payload()-->  filling batch  --take()-->  sending batch
//   --sent()-->
//
// While one batch is sent, the next one fills; the memory of neither moves. Output beyond kBatch
// forms further batches. Urgent PDUs overtake those, but never a send in progress.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"

namespace sluice::iscsi {

class Outbox {
 public:
  // Begins a PDU.
  void begin() {
    if (filling_.bytes >= kBatch || discarded_) [[unlikely]]
      seal();
  }
  // The PDU has a StatSN.
  void numbered() { ++filling_.numbered; }
  // The PDUs that `write` writes must have no StatSN. They are sent before all others that are not
  // being sent yet, and in the order of the calls.
  template <class Write>
  void ahead(Write&& write) {
    if (filling_.bytes == 0 && waiting_.empty()) return write();
    std::swap(filling_, urgent_);
    write();
    std::swap(filling_, urgent_);
  }
  // The number of queued PDUs with a StatSN that ahead() would overtake.
  uint32_t overtaken() const;

  // Returns `size` bytes (1..kArenaChunk) of 8-byte aligned memory that does not move until it is
  // sent. The caller must fill them before the batch is sent.
  uint8_t* header(uint32_t size) {
    const uint32_t step = (size + 7) & ~7u;
    if (filling_.arena_left < step) next_chunk();
    uint8_t* p = filling_.arena_at;
    filling_.arena_at += step;
    filling_.arena_left -= step;
    append(p, size);
    return p;
  }
  // Queues a payload; its owner is referenced until it was sent.
  void payload(Slice&& slice) {
    append(slice.data, slice.size);
    BufferRef owner = std::move(slice.owner);
    if (owner && !discarded_) filling_.owners.push_back(std::move(owner));
  }

  size_t bytes() const { return filling_.bytes + waiting_bytes_ + urgent_.bytes + sending_.bytes; }
  bool in_flight() const { return in_flight_; }
  bool ready() const { return !in_flight_ && bytes() != 0; }
  bool empty() const { return bytes() == 0; }

  // The next vectors to send, at most `limit`; valid until sent(). Call it only when ready().
  std::span<iovec> take(size_t limit);
  // The carrier has sent `n` bytes of the vectors from take().
  void sent(size_t n);
  // Nothing more is sent: releases everything immediately, except a send in progress, which the
  // kernel still reads and sent() releases. Later output is discarded. Do not call it within a PDU.
  void discard();

  static constexpr uint32_t kArenaChunk = 4096;
  // A batch accepts no further PDU when it has this size. Larger sends have no measurable benefit
  // and delay urgent PDUs.
  static constexpr size_t kBatch = size_t{2} << 20;

 private:
  struct Batch {
    std::vector<iovec> vectors;
    std::vector<BufferRef> owners;
    std::vector<std::unique_ptr<uint8_t[]>> arena;
    size_t chunk = 0;  // chunks in use
    uint8_t* arena_at = nullptr;
    uint32_t arena_left = 0;
    size_t bytes = 0;  // not sent yet
    size_t first = 0;  // number of vectors that were sent
    uint32_t numbered = 0;
    void clear();
  };
  void append(uint8_t* p, uint32_t n) {
    if (discarded_) [[unlikely]]
      return;
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
  void seal();

  Batch filling_;
  std::deque<Batch> waiting_;  // between the two; the front is sent first
  size_t waiting_bytes_ = 0;
  Batch urgent_;
  Batch sending_;
  bool in_flight_ = false;
  bool discarded_ = false;
};

}  // namespace sluice::iscsi
