// What a host has provably received from this gateway (DESIGN R6, model-check finding 1). A host
// abandons a path on which it receives nothing, even if it still sends. So its silence counts from
// the time when this gateway sent the last confirmed message: a ping that was answered, or a
// response that ExpStatSN covers.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"
#include "base/limits.h"
#include "iscsi/command_window.h"
#include "pdu/bhs.h"

namespace sluice::iscsi {

class PeerLiveness {
 public:
  explicit PeerLiveness(Nanos now) : confirmed_until_(now) {}

  // A response with this StatSN is sent. Only the first one in each limits::kTick is recorded, so
  // that the recorded time is never later than the true one.
  void record_sent(uint32_t stat_sn, Nanos now) {
    if (count_ == notes_.size() || (count_ != 0 && now - last().sent < limits::kTick)) return;
    notes_[(first_ + count_++) % notes_.size()] = {stat_sn, now};
  }
  void record_acked(uint32_t exp_stat_sn) {
    while (count_ != 0 && serial_less(notes_[first_].stat_sn, exp_stat_sn)) {
      confirm(notes_[first_].sent);
      first_ = (first_ + 1) % notes_.size();
      --count_;
    }
  }
  // A ping with this target transfer tag is sent. It replaces a ping in flight.
  void record_ping(uint32_t transfer_tag, Nanos now) {
    ping_tag_ = transfer_tag;
    ping_sent_ = now;
  }
  // A NOP-Out with this target transfer tag arrived. It confirms the ping only if that is in
  // flight.
  void record_pong(uint32_t transfer_tag) {
    answers_pings_ = true;
    if (transfer_tag != ping_tag_) return;
    end_ping();
    confirm(ping_sent_);
  }
  void end_ping() { ping_tag_ = pdu::kReservedTag; }
  // A forwarder always answers pings.
  void expect_pongs() { answers_pings_ = true; }

  // When the last message that the peer has confirmed was sent.
  Nanos confirmed_until() const { return confirmed_until_; }
  // Whether the peer has ever answered a ping. DESIGN R6 exempts peers that never do.
  bool answers_pings() const { return answers_pings_; }
  bool ping_in_flight() const { return ping_tag_ != pdu::kReservedTag; }
  // When the last ping was sent; 0: never.
  Nanos ping_sent() const { return ping_sent_; }

 private:
  struct Note {
    uint32_t stat_sn = 0;
    Nanos sent = 0;
  };
  const Note& last() const { return notes_[(first_ + count_ - 1) % notes_.size()]; }
  void confirm(Nanos sent) { confirmed_until_ = sent > confirmed_until_ ? sent : confirmed_until_; }

  Nanos confirmed_until_;
  uint32_t ping_tag_ = pdu::kReservedTag;  // of the ping in flight
  Nanos ping_sent_ = 0;
  bool answers_pings_ = false;
  // Covers kDiscardSilence; older entries are irrelevant.
  std::array<Note, limits::kDiscardSilence / limits::kTick + 2> notes_;
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace sluice::iscsi
