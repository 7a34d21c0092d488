#include "iscsi/outbox.h"

#include <algorithm>

namespace sluice::iscsi {

void Outbox::Batch::clear() {
  vectors.clear();
  owners.clear();
  chunk = 0;
  arena_at = nullptr;
  arena_left = 0;
  bytes = 0;
  first = 0;
  numbered = 0;
  // One busy moment must not keep its memory for the life of the connection.
  if (arena.size() > 4) arena.resize(4);
}

void Outbox::next_chunk() {
  if (filling_.chunk == filling_.arena.size()) {
    filling_.arena.push_back(std::make_unique<uint8_t[]>(kArenaChunk));
  }
  filling_.arena_at = filling_.arena[filling_.chunk++].get();
  filling_.arena_left = kArenaChunk;
}

void Outbox::seal() {
  if (discarded_) {
    filling_ = Batch();  // its PDU is complete, so no writer uses its memory
    return;
  }
  waiting_bytes_ += filling_.bytes;
  waiting_.push_back(std::exchange(filling_, Batch()));
}

uint32_t Outbox::overtaken() const {
  uint32_t count = filling_.numbered;
  for (const Batch& batch : waiting_) count += batch.numbered;
  return count;
}

std::span<iovec> Outbox::take(size_t limit) {
  if (sending_.bytes == 0) {
    sending_.clear();
    if (urgent_.bytes != 0) {
      std::swap(urgent_, sending_);
    } else if (waiting_.empty()) {
      std::swap(filling_, sending_);
    } else {
      sending_ = std::move(waiting_.front());
      waiting_.pop_front();
      waiting_bytes_ -= sending_.bytes;
    }
  }
  in_flight_ = true;
  const size_t n = std::min(limit, sending_.vectors.size() - sending_.first);
  return {sending_.vectors.data() + sending_.first, n};
}

void Outbox::sent(size_t n) {
  in_flight_ = false;
  if (discarded_) {
    sending_ = Batch();
    return;
  }
  sending_.bytes -= n;
  while (n > 0) {
    iovec& v = sending_.vectors[sending_.first];
    if (n < v.iov_len) {
      v.iov_base = static_cast<uint8_t*>(v.iov_base) + n;
      v.iov_len -= n;
      break;
    }
    n -= v.iov_len;
    ++sending_.first;
  }
  if (sending_.bytes == 0) sending_.clear();
}

void Outbox::discard() {
  discarded_ = true;
  waiting_bytes_ = 0;
  // Not clear(): that keeps memory for what follows, and nothing does.
  filling_ = Batch();
  urgent_ = Batch();
  waiting_.clear();
  if (!in_flight_) sending_ = Batch();
}

}  // namespace sluice::iscsi
