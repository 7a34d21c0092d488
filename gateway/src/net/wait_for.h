// A wait of a control thread for reactors, which do not notify it.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "base/boot_clock.h"

namespace sluice::net {

// Asks `done` every 10 ms. Whether it was true before `until` (boot_clock.h).
inline bool wait_for(const std::function<bool()>& done, Nanos until) {
  while (!done()) {
    if (boot_clock_now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace sluice::net
