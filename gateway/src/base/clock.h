// Time in the protocol core: a number that the caller passes. base/boot_clock.h reads a real clock,
// for rooms that the simulation does not run.
#pragma once

#include <cstdint>

namespace sluice {

// Nanoseconds since an arbitrary epoch, monotonic.
using Nanos = int64_t;

inline constexpr Nanos kMicrosecond = 1'000;
inline constexpr Nanos kMillisecond = 1'000'000;
inline constexpr Nanos kSecond = 1'000'000'000;

}  // namespace sluice
