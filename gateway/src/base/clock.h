// Time as the protocol core sees it: a number that the caller passes in. Only net/ and main read
// a real clock (CLOCK_BOOTTIME, which counts while the machine sleeps: DESIGN R6).
#pragma once

#include <cstdint>

namespace sluice {

// Nanoseconds since an arbitrary epoch, monotonic.
using Nanos = int64_t;

inline constexpr Nanos kMicrosecond = 1'000;
inline constexpr Nanos kMillisecond = 1'000'000;
inline constexpr Nanos kSecond = 1'000'000'000;

}  // namespace sluice
