// Detects stalls (DESIGN R6). It only decides: net/ reads the clock and acts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "base/limits.h"
#include "base/safety_mutation.h"

namespace sluice {

// A reactor's check of itself. Input that one iteration finds arrived after the previous iteration
// began to poll. So the time since then is an upper bound for the age of everything that it will
// pass to a backend.
class StallGuard {
 public:
  explicit StallGuard(Nanos now) : previous_(now), current_(now) {}

  // An iteration begins. True: late, see below.
  bool begin_iteration(Nanos now) {
    previous_ = current_;
    current_ = now;
    return late(now);
  }
  // Whether input of this iteration may be older than limits::kStallLimit: its host may have
  // repeated the command on another path.
  bool late(Nanos now) const {
    if (mutation_disables(Guard::kStall)) return false;
    return now - previous_ > limits::kStallLimit;
  }
  Nanos behind(Nanos now) const { return now - previous_; }
  // All old input was discarded.
  void start_over(Nanos now) { previous_ = current_ = now; }

 private:
  Nanos previous_;  // begin of the previous iteration
  Nanos current_;   // begin of the current iteration
};

// The watchdog's check of one reactor, which iterates at least every limits::kTick.
class PulseCheck {
 public:
  // True: `iterations` has not changed for limits::kWatchdogLimit. Only time while the watchdog was
  // running counts. If the whole process was stopped (SIGSTOP, a paused machine), the reactor
  // handles that itself, with StallGuard.
  bool stopped(Nanos now, uint64_t iterations) {
    const Nanos span = now - last_check_;
    last_check_ = now;
    if (iterations != iterations_) {
      iterations_ = iterations;
      still_ = 0;
      return false;
    }
    still_ += std::min(span, 2 * limits::kWatchdogInterval);
    return still_ >= limits::kWatchdogLimit && !mutation_disables(Guard::kWatchdog);
  }

 private:
  Nanos last_check_ = 0;
  Nanos still_ = -2 * limits::kWatchdogInterval;  // the first check has no predecessor
  uint64_t iterations_ = 0;
};

}  // namespace sluice
