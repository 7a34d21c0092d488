// What counts as standing still (DESIGN R6). Decisions only: net/ reads the clock and acts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/canary.h"
#include "base/clock.h"
#include "base/limits.h"

namespace sluice {

// A reactor's eye on itself. What a turn finds arrived after the turn before began to look, so
// the time since then bounds the age of all it is about to hand to a backend.
class StallGuard {
 public:
  explicit StallGuard(Nanos now) : previous_(now), current_(now) {}

  // A turn begins. True: late, see below.
  bool begin_turn(Nanos now) {
    previous_ = current_;
    current_ = now;
    return late(now);
  }
  // Whether what this turn found may be older than limits::kStallLimit: its host may have asked
  // again elsewhere.
  bool late(Nanos now) const {
    if (lacks(Guard::kStall)) return false;
    return now - previous_ > limits::kStallLimit;
  }
  Nanos behind(Nanos now) const { return now - previous_; }
  // All that was old is gone.
  void start_over(Nanos now) { previous_ = current_ = now; }

 private:
  Nanos previous_;  // when the last turn but one began
  Nanos current_;   // when the last one did
};

// The watchdog's eye on one reactor, which turns every limits::kTick even if nothing happens.
class PulseCheck {
 public:
  // True: `turns` has stood still for limits::kWatchdogLimit. Only time during which the watchdog
  // was awake counts: where the whole process stood still (SIGSTOP, a paused machine) the reactor
  // mends that itself, by StallGuard.
  bool stopped(Nanos now, uint64_t turns) {
    const Nanos span = now - last_look_;
    last_look_ = now;
    if (turns != turns_) {
      turns_ = turns;
      still_ = 0;
      return false;
    }
    still_ += std::min(span, 2 * limits::kWatchdogLook);
    return still_ >= limits::kWatchdogLimit && !lacks(Guard::kWatchdog);
  }

 private:
  Nanos last_look_ = 0;
  Nanos still_ = -2 * limits::kWatchdogLook;  // the first look has none before it
  uint64_t turns_ = 0;
};

}  // namespace sluice
