// What a host is known to have heard of us (DESIGN R6, model-check finding 1): a host gives a path
// up that it hears nothing from, however well we hear the host. So silence counts from when we
// sent the last thing that it confirmed: a ping it answered, a response its ExpStatSN covers.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"
#include "base/limits.h"
#include "iscsi/command_window.h"

namespace sluice::iscsi {

class Hearing {
 public:
  explicit Hearing(Nanos now) : since_(now) {}

  // A response with this StatSN goes out. One in limits::kTick is noted, the first, so what is
  // known is never later than the truth.
  void said(uint32_t stat_sn, Nanos now) {
    if (count_ == notes_.size() || (count_ != 0 && now - last().sent < limits::kTick)) return;
    notes_[(first_ + count_++) % notes_.size()] = {stat_sn, now};
  }
  void confirmed(uint32_t exp_stat_sn) {
    while (count_ != 0 && serial_less(notes_[first_].stat_sn, exp_stat_sn)) {
      heard(notes_[first_].sent);
      first_ = (first_ + 1) % notes_.size();
      --count_;
    }
  }
  // It has heard what we sent then.
  void heard(Nanos sent) { since_ = sent > since_ ? sent : since_; }
  // When the last thing was sent that it has heard.
  Nanos since() const { return since_; }

 private:
  struct Note {
    uint32_t stat_sn = 0;
    Nanos sent = 0;
  };
  const Note& last() const { return notes_[(first_ + count_ - 1) % notes_.size()]; }

  Nanos since_;
  // More than fit into kDiscardSilence, after which nothing counts any more.
  std::array<Note, limits::kDiscardSilence / limits::kTick + 2> notes_;
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace sluice::iscsi
