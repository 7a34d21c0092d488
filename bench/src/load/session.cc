#include "load/session.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace sluice::bench {
namespace {
constexpr uint32_t kBufferSize = 256u << 10;
constexpr uint32_t kWorthDiscarding = 16u << 10;
constexpr uint8_t kCheckCondition = 0x02;
constexpr uint8_t kUnitAttention = 0x06;
constexpr uint8_t kSenseKeyBits = 0x0f;
constexpr uint8_t kDescriptorSense = 0x72;  // and 0x73, deferred (SPC-5 §4.4)
constexpr uint32_t kAttentionLimit = 256;   // of a session: no LUN has so much to tell
}  // namespace

uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

Session::Session(int fd, std::unique_ptr<Dialect> dialect, const Workload& workload, uint32_t index,
                 const uint8_t* shared)
    : fd_(fd),
      dialect_(std::move(dialect)),
      workload_(workload),
      script_(workload, index),
      pattern_(workload.seed),
      shared_(shared),
      slots_(workload.depth),
      buffer_(kBufferSize) {
  tx_.set_digests(dialect_->digests());
  for (uint32_t i = workload.depth; i-- > 0;) {
    slots_[i].command.slot = i;
    slots_[i].command.size = workload.size;
    if (workload.verify) slots_[i].buffer.resize(workload.size);
    free_.push_back(i);
  }
}

Session::~Session() { close(fd_); }

void Session::start(Phase phase) {
  script_.start(phase);
  issuing_ = true;
  issue_free(now_ns());
  if (!tx_.flush(fd_)) fail("sending fails");
}

void Session::stop() {
  issuing_ = false;
  if (held_) again_.push_back(held_slot_);
  held_ = false;
  for (const uint32_t slot : again_) {  // not sent, so not answered
    slots_[slot].issued_ns = 0;
    free_.push_back(slot);
  }
  again_.clear();
}

// Chooses the slot's next command. False: the phase has no more.
bool Session::prepare(Slot& slot) {
  Command& command = slot.command;
  if (!script_.next(&command.offset, &command.write)) return false;
  if (command.write && workload_.verify) {
    pattern_.fill(slot.buffer.data(), command.offset, command.size);
  }
  command.data = workload_.verify ? slot.buffer.data() : shared_;
  slot.got = 0;
  return true;
}

void Session::issue_free(uint64_t now) {
  while (held_ || !again_.empty() || (issuing_ && !free_.empty())) {
    if (!held_ && !again_.empty()) {
      held_slot_ = again_.back();
      again_.pop_back();
    } else if (!held_) {
      if (!prepare(slots_[free_.back()])) {
        issuing_ = false;
        return;
      }
      held_slot_ = free_.back();
      free_.pop_back();
    }
    Slot& slot = slots_[held_slot_];
    held_ = !dialect_->issue(slot.command, tx_);
    if (held_) return;
    if (slot.issued_ns == 0) slot.issued_ns = now;
  }
}

void Session::fail(const std::string& why) {
  failed_ = true;
  count_error(why);
}

void Session::count_error(const std::string& why) {
  ++tally_.errors;
  if (tally_.first_error.empty()) tally_.first_error = why;
}

void Session::store_sense(const uint8_t* data, uint32_t size) {
  for (uint32_t i = 0; i < size && body_done_ + i < sense_.size(); ++i) {
    sense_[body_done_ + i] = data[i];
  }
}

bool Session::unit_attention(uint8_t status) const {
  if (status != kCheckCondition || in_.payload || in_.data < sense_.size()) return false;
  const uint8_t key = (sense_[2] & 0x7e) == kDescriptorSense ? sense_[3] : sense_[4];
  return (key & kSenseKeyBits) == kUnitAttention;
}

void Session::complete(Slot& slot, uint8_t status) {
  // It says what happened to the LUN, and that the command wasn't executed; initiators send it
  // again.
  if (unit_attention(status) && attentions_ < kAttentionLimit) {
    ++attentions_;
    ++tally_.attentions;
    slot.got = 0;
    again_.push_back(slot.command.slot);
    return;
  }
  if (status != 0) {
    count_error("status " + std::to_string(status) + " at byte " +
                std::to_string(slot.command.offset));
  } else if (!slot.command.write && slot.got != slot.command.size) {
    count_error("a read answered short");
  }
  tally_.latency.record(now_ - slot.issued_ns);
  ++(slot.command.write ? tally_.writes : tally_.reads);
  slot.issued_ns = 0;
  free_.push_back(slot.command.slot);
}

void Session::check_payload(const uint8_t* data, uint32_t size) {
  const Slot& slot = slots_[in_.slot];
  const uint64_t at = slot.command.offset + in_.offset + body_done_;
  const uint32_t right = pattern_.check(data, at, size);
  if (right == size) return;
  ++tally_.mismatches;
  count_error("wrong data at byte " + std::to_string(at + right) + " of the LUN");
}

void Session::check_digest(const uint8_t* data, uint32_t size) {
  const uint32_t covered = in_.data + in_.padding;
  if (body_done_ < covered) {
    const uint32_t part = std::min(size, covered - body_done_);
    digest_state_ = digest_extend(digest_state_, data, part);
  }
  for (uint32_t i = 0; i < size; ++i) {  // a digest may arrive in pieces
    const uint32_t at = body_done_ + i;
    if (at >= covered) digest_wire_[at - covered] = data[i];
  }
  if (body_done_ + size == covered + kDigestSize && !digest_matches(digest_wire_, digest_state_)) {
    ++tally_.mismatches;
    count_error("wrong data digest");
  }
}

uint32_t Session::take_body(const uint8_t* data, uint32_t size) {
  const uint32_t take = std::min(size, body_left_);
  if (in_.done && !in_.payload) store_sense(data, take);
  if (workload_.verify) {
    if (in_.payload && body_done_ < in_.data) {
      check_payload(data, std::min(take, in_.data - body_done_));
    }
    if (in_.data_digest) check_digest(data, take);
  }
  body_done_ += take;
  body_left_ -= take;
  return take;
}

bool Session::end_message() {
  if (in_.slot == Incoming::kNoSlot) return true;
  Slot& slot = slots_[in_.slot];
  if (in_.payload) slot.got += in_.data;
  if (in_.done) complete(slot, in_.status);
  return true;
}

// Consumes complete headers and whatever there is of bodies; `used` says how much.
bool Session::parse(const uint8_t* data, uint32_t size, uint32_t* used) {
  const uint32_t header_size = dialect_->header_size();
  uint32_t at = 0;
  for (;;) {
    if (body_left_ > 0) {
      if (at == size) break;
      at += take_body(data + at, size - at);
      if (body_left_ > 0) break;
      end_message();
      continue;
    }
    if (size - at < header_size) break;
    in_ = {};
    const char* wrong = dialect_->parse(data + at, &in_, tx_);
    if (!wrong && in_.slot != Incoming::kNoSlot &&
        (in_.slot >= slots_.size() || slots_[in_.slot].issued_ns == 0)) {
      wrong = "an answer to nothing asked";
    }
    if (!wrong && workload_.verify && header_size > pdu::kBhsSize &&
        !digest_matches(data + at + pdu::kBhsSize,
                        digest_extend(kDigestStart, data + at, pdu::kBhsSize))) {
      wrong = "wrong header digest";
    }
    if (wrong) {
      fail(wrong);
      return false;
    }
    at += header_size;
    body_left_ = in_.data + in_.padding + (in_.data_digest ? kDigestSize : 0);
    body_done_ = 0;
    digest_state_ = kDigestStart;
    if (body_left_ == 0) end_message();
  }
  *used = at;
  return true;
}

bool Session::pump() {
  ssize_t n = 0;
  if (workload_.discard && buffered_ == 0 && body_left_ >= kWorthDiscarding) {
    n = recv(fd_, nullptr, body_left_, MSG_DONTWAIT | MSG_TRUNC);
    if (n > 0) {
      now_ = now_ns();
      body_left_ -= static_cast<uint32_t>(n);
      body_done_ += static_cast<uint32_t>(n);
      if (body_left_ == 0) end_message();
    }
  } else {
    n = recv(fd_, buffer_.data() + buffered_, buffer_.size() - buffered_, MSG_DONTWAIT);
    if (n > 0) {
      now_ = now_ns();
      const uint32_t size = buffered_ + static_cast<uint32_t>(n);
      uint32_t used = 0;
      if (!parse(buffer_.data(), size, &used)) return true;
      buffered_ = size - used;
      std::memmove(buffer_.data(), buffer_.data() + used, buffered_);
    }
  }
  if (n == 0) fail("the target closed the connection");
  if (n < 0 && errno != EAGAIN && errno != EINTR) fail(std::strerror(errno));
  if (n > 0) {
    ++tally_.receives;
    issue_free(now_);
  }
  if (!failed_ && !tx_.empty() && !tx_.flush(fd_)) fail("sending fails");
  return n > 0;
}

}  // namespace sluice::bench
