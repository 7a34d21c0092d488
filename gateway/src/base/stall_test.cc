#include "base/stall.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using limits::kStallLimit;
using limits::kWatchdogInterval;
using limits::kWatchdogLimit;

constexpr Nanos kStart = 1000 * kSecond;

TEST(StallGuard, AcceptsAReactorThatIterates) {
  StallGuard guard(kStart);
  Nanos now = kStart;
  for (int i = 0; i < 100; ++i) {
    now += limits::kTick;
    EXPECT_FALSE(guard.begin_iteration(now));
    EXPECT_FALSE(guard.late(now + limits::kTick));
  }
}

TEST(StallGuard, AnIterationThatBeginsAfterTheLimitIsLate) {
  StallGuard guard(kStart);
  EXPECT_FALSE(guard.begin_iteration(kStart + kStallLimit));
  StallGuard other(kStart);
  EXPECT_TRUE(other.begin_iteration(kStart + kStallLimit + 1));
}

TEST(StallGuard, AnIterationThatExceedsTheLimitIsLateBeforeItSubmits) {
  StallGuard guard(kStart);
  ASSERT_FALSE(guard.begin_iteration(kStart + limits::kTick));
  EXPECT_FALSE(guard.late(kStart + kStallLimit));
  EXPECT_TRUE(guard.late(kStart + kStallLimit + 1));
}

// What came just after a slow iteration began to poll waited for all of it.
TEST(StallGuard, TwoSlowIterationsAddUp) {
  StallGuard guard(kStart);
  ASSERT_FALSE(guard.begin_iteration(kStart));
  const Nanos second = kStart + kStallLimit * 2 / 3;
  ASSERT_FALSE(guard.begin_iteration(second));
  EXPECT_TRUE(guard.late(second + kStallLimit * 2 / 3));
}

TEST(StallGuard, AcceptsTheReactorAgainAfterAStartOver) {
  StallGuard guard(kStart);
  const Nanos woke = kStart + 60 * kSecond;
  ASSERT_TRUE(guard.begin_iteration(woke));
  EXPECT_EQ(guard.behind(woke), 60 * kSecond);
  guard.start_over(woke);
  EXPECT_FALSE(guard.late(woke));
  EXPECT_FALSE(guard.begin_iteration(woke + limits::kTick));
  EXPECT_FALSE(guard.begin_iteration(woke + 2 * limits::kTick));
}

// Checks every kWatchdogInterval until the check reports the reactor as stopped; it does not
// iterate. Returns how long that took, or 0 if it was never reported.
Nanos looks_until_stopped(PulseCheck* check, Nanos from, uint64_t iterations, Nanos span) {
  for (Nanos now = from; now <= from + span; now += kWatchdogInterval) {
    if (check->stopped(now, iterations)) return now - from;
  }
  return 0;
}

TEST(PulseCheck, AcceptsAReactorThatIterates) {
  PulseCheck check;
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_FALSE(check.stopped(kStart + static_cast<Nanos>(i) * kWatchdogInterval, i));
  }
}

TEST(PulseCheck, ReportsAReactorThatStopped) {
  PulseCheck check;
  ASSERT_FALSE(check.stopped(kStart - kWatchdogInterval, 6));
  EXPECT_FALSE(check.stopped(kStart, 7));
  EXPECT_EQ(looks_until_stopped(&check, kStart, 7, 60 * kSecond), kWatchdogLimit);
}

TEST(PulseCheck, ReportsAReactorThatNeverIterated) {
  PulseCheck check;
  EXPECT_EQ(looks_until_stopped(&check, kStart, 0, 60 * kSecond), kWatchdogLimit);
}

TEST(PulseCheck, IgnoresTimeInWhichTheWholeProcessWasSuspended) {
  PulseCheck check;
  ASSERT_FALSE(check.stopped(kStart, 7));
  const Nanos awake = kStart + 3600 * kSecond;
  EXPECT_FALSE(check.stopped(awake, 7)) << "the watchdog woke first";
  EXPECT_FALSE(check.stopped(awake + kWatchdogInterval, 8));
}

TEST(PulseCheck, ReportsAReactorThatStaysStoppedAfterASuspension) {
  PulseCheck check;
  ASSERT_FALSE(check.stopped(kStart, 7));
  EXPECT_NE(looks_until_stopped(&check, kStart + 3600 * kSecond, 7, kWatchdogLimit), 0);
}

}  // namespace
}  // namespace sluice
