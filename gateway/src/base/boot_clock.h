// The clock of DESIGN R6: CLOCK_BOOTTIME, which also counts while the machine is suspended.
#pragma once

#include <ctime>

#include "base/clock.h"

namespace sluice {

inline Nanos boot_clock_now() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

}  // namespace sluice
