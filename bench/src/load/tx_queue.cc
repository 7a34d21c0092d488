#include "load/tx_queue.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sluice::bench {

uint32_t TxQueue::data_digest(const uint8_t* data, uint32_t size) {
  if (!digests_.constant_payload) return digest_extend(kDigestStart, data, size);
  for (const Known& known : known_) {
    if (known.data == data && known.size == size) return known.state;
  }
  const uint32_t state = digest_extend(kDigestStart, data, size);
  if (known_.size() < 64) known_.push_back({data, size, state});
  return state;
}

void TxQueue::add(const pdu::Bhs& header, const uint8_t* data, uint32_t size) {
  fill(messages_.emplace_back(), header, data, size);
}

void TxQueue::add_next(const pdu::Bhs& header) {
  const size_t at = std::max(first_ + (first_sent_ > 0 ? 1 : 0), urgent_end_);
  fill(*messages_.emplace(messages_.begin() + static_cast<ptrdiff_t>(at)), header, nullptr, 0);
  urgent_end_ = at + 1;
}

void TxQueue::fill(Message& m, const pdu::Bhs& header, const uint8_t* data, uint32_t size) {
  std::memcpy(m.head.data(), header.data(), pdu::kBhsSize);
  m.head_size = pdu::kBhsSize;
  if (digests_.header) {
    digest_store(&m.head[pdu::kBhsSize], digest_extend(kDigestStart, header.data(), pdu::kBhsSize));
    m.head_size += kDigestSize;
  }
  m.data = data;
  m.data_size = size;
  m.tail_size = 0;
  if (size == 0) return;
  m.tail = {};
  m.tail_size = static_cast<uint8_t>(pdu::padded(size) - size);
  if (digests_.data) {  // covers the padding too (RFC 7143 §11.2.4)
    uint32_t state = data_digest(data, size);
    state = digest_extend(state, m.tail.data(), m.tail_size);
    digest_store(&m.tail[m.tail_size], state);
    m.tail_size += kDigestSize;
  }
}

uint32_t TxQueue::gather() {
  uint32_t count = 0;
  uint32_t skip = first_sent_;
  const auto add_part = [&](const uint8_t* data, uint32_t size) {
    const uint32_t gone = std::min(skip, size);
    skip -= gone;
    if (gone < size) parts_[count++] = {const_cast<uint8_t*>(data) + gone, size - gone};
  };
  const size_t end = std::min(messages_.size(), first_ + kMaxMessages);
  for (size_t i = first_; i < end; ++i) {
    const Message& m = messages_[i];
    add_part(m.head.data(), m.head_size);
    if (m.data_size > 0) add_part(m.data, m.data_size);
    if (m.tail_size > 0) add_part(m.tail.data(), m.tail_size);
  }
  return count;
}

void TxQueue::drop(uint64_t sent) {
  sent += first_sent_;
  while (first_ < messages_.size() && sent >= messages_[first_].size()) {
    sent -= messages_[first_++].size();
  }
  first_sent_ = static_cast<uint32_t>(sent);
  if (first_ == messages_.size()) {
    messages_.clear();
    first_ = urgent_end_ = 0;
  } else if (first_ >= kMaxMessages) {
    messages_.erase(messages_.begin(), messages_.begin() + static_cast<ptrdiff_t>(first_));
    urgent_end_ -= std::min(urgent_end_, first_);
    first_ = 0;
  }
}

bool TxQueue::flush(int fd) {
  while (!empty()) {
    msghdr message{};
    message.msg_iov = parts_.data();
    message.msg_iovlen = gather();
    const ssize_t n = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    drop(static_cast<uint64_t>(n));
  }
  return true;
}

}  // namespace sluice::bench
