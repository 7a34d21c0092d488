// Detects a request that the backend does not complete for limits::kRequestHung, although it may
// complete others: a disk that repeats one command without end. Each request counts in the period
// in which it began, so no list of requests is necessary.
//
// Threads: current() any, poll() one.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/limits.h"

namespace sluice::lun {

class RequestAges {
 public:
  static constexpr unsigned kPeriods = 8;
  static constexpr Nanos kPeriod = limits::kRequestHung / 4;

  // The period of a request that begins now.
  uint8_t current() const { return current_.load(std::memory_order_relaxed); }

  // `in_progress`: numbers of requests by period. True: one of them has been in progress for
  // limits::kRequestHung, or up to kPeriod longer.
  bool poll(const std::array<uint64_t, kPeriods>& in_progress, Nanos now) {
    bool hung = false;
    for (unsigned p = 0; p < kPeriods; ++p) {
      hung |= p != current() && in_progress[p] != 0 && now - ended_[p] >= limits::kRequestHung;
    }
    if (now - begun_ >= kPeriod) begin_period(in_progress, now);
    return hung;
  }

 private:
  // A period with requests in progress can't begin again. Without another one, the present period
  // goes on.
  void begin_period(const std::array<uint64_t, kPeriods>& in_progress, Nanos now) {
    for (unsigned step = 1; step < kPeriods; ++step) {
      const unsigned next = (current() + step) % kPeriods;
      if (in_progress[next] != 0) continue;
      ended_[current()] = now;
      begun_ = now;
      current_.store(static_cast<uint8_t>(next), std::memory_order_relaxed);
      return;
    }
  }

  std::atomic<uint8_t> current_ = 0;
  Nanos begun_ = 0;
  std::array<Nanos, kPeriods> ended_{};
};

}  // namespace sluice::lun
