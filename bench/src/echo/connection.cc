#include "echo/connection.h"

#include <algorithm>
#include <cstring>

namespace sluice::bench {

using bare::Op;
using bare::Status;
using bare::Store;

// Copies into the partial section until it holds `need` bytes; returns how many were taken.
uint32_t Connection::collect(const uint8_t* data, uint32_t size, uint32_t need) {
  const uint32_t take = std::min(size, need - partial_size_);
  std::memcpy(partial_.data() + partial_size_, data, take);
  partial_size_ += take;
  return take;
}

bool Connection::input(const uint8_t* data, uint32_t size) {
  while (size > 0) {
    uint32_t taken = 0;
    if (state_ == State::kPayload) {
      taken = std::min(size, payload_left_);
      take_payload(data, taken);
      payload_left_ -= taken;
      if (payload_left_ == 0) {
        if (digests_.data) {
          state_ = State::kPayloadDigest;
        } else if (!finish_write()) {
          return false;
        }
      }
    } else {
      const uint32_t need = state_ == State::kPayloadDigest
                                ? kDigestSize
                                : bare::kHeaderSize + (digests_.header ? kDigestSize : 0);
      taken = collect(data, size, need);
      if (partial_size_ == need) {
        partial_size_ = 0;
        if (!(state_ == State::kHeader ? execute() : finish_write())) return false;
      }
    }
    data += taken;
    size -= taken;
  }
  return true;
}

bool Connection::execute() {
  std::memcpy(request_.data(), partial_.data(), bare::kHeaderSize);
  if (digests_.header) {
    const uint32_t state = digest_extend(kDigestStart, partial_.data(), bare::kHeaderSize);
    if (!digest_matches(partial_.data() + bare::kHeaderSize, state)) return false;
  }
  if (!greeted_) {  // nothing means anything before the peer has chosen store and digests
    if (request_.op() != Op::kHello || request_.payload() != 0) return false;
    if (request_.store() > Store::kFile) return false;
    if (stores_.size(request_.store()) == 0) {
      return answer(Status::kRefused, nullptr, 0);
    }
    greeted_ = true;
    const DigestChoice digests = request_.digests();
    store_ = request_.store();
    const bool queued = answer(Status::kGood, nullptr, 0);
    digests_ = digests;  // from the next message on, in both directions
    return queued;
  }
  if (request_.op() == Op::kWrite) return begin_write();
  if (request_.op() != Op::kRead || request_.payload() != 0) return false;

  const uint32_t size = request_.wanted();
  if (size == 0 || size > bare::kMaxPayload) return false;
  if (store_ == Store::kNull) return answer(Status::kGood, stores_.null_payload(), size);
  if (!stores_.holds(store_, request_.offset(), size)) return answer(Status::kRefused, nullptr, 0);
  if (store_ == Store::kMemory) {
    return answer(Status::kGood, stores_.memory(request_.offset()), size);
  }
  if (filling().full()) return false;
  uint8_t* buffer = filling().scratch(size);
  if (!stores_.read(request_.offset(), buffer, size)) {
    return answer(Status::kMediumError, nullptr, 0);
  }
  return answer(Status::kGood, buffer, size);
}

bool Connection::begin_write() {
  payload_left_ = request_.payload();
  if (payload_left_ == 0 || payload_left_ > bare::kMaxPayload) return false;
  write_at_ = request_.offset();
  const bool fits = stores_.holds(store_, write_at_, payload_left_);
  write_status_ = fits ? Status::kGood : Status::kRefused;
  payload_digest_ = kDigestStart;
  state_ = State::kPayload;
  return true;
}

void Connection::take_payload(const uint8_t* data, uint32_t size) {
  if (digests_.data) payload_digest_ = digest_extend(payload_digest_, data, size);
  if (store_ == Store::kNull || write_status_ != Status::kGood) return;
  if (store_ == Store::kMemory) {
    std::memcpy(stores_.memory(write_at_), data, size);
  } else if (!stores_.write(write_at_, data, size)) {
    write_status_ = Status::kMediumError;
  }
  write_at_ += size;
}

bool Connection::finish_write() {
  state_ = State::kHeader;
  if (digests_.data && !digest_matches(partial_.data(), payload_digest_)) {
    write_status_ = Status::kDigestError;
  }
  return answer(write_status_, nullptr, 0);
}

bool Connection::answer(Status status, const uint8_t* payload, uint32_t size) {
  if (filling().full()) return false;  // more in flight than a batch holds: see README
  bare::Header header;
  header.set_op(request_.op());
  header.set_status(status);
  header.set_tag(request_.tag());
  header.set_payload(size);
  filling().add(header, payload, digests_);
  return true;
}

}  // namespace sluice::bench
