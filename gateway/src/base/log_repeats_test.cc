#include "base/log_repeats.h"

#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

namespace sluice::log {
namespace {

TEST(Repeats, ACauseIsWrittenOncePerMinuteWithTheCountOfSuppressedLines) {
  Repeats repeats;
  Nanos now = kSecond;
  unsigned written = 0;
  uint64_t suppressed = 0;
  for (; now <= 10 * Repeats::kSpan; now += 200 * kMillisecond) {  // five per second
    if (const auto left_out = repeats.admit("wrong address", now)) {
      ++written;
      suppressed += *left_out;
    }
  }
  EXPECT_EQ(written, 10u);
  EXPECT_EQ(suppressed, 9 * 299u);
}

TEST(Repeats, CausesDoNotSuppressEachOther) {
  Repeats repeats;
  EXPECT_TRUE(repeats.admit("a", kSecond));
  EXPECT_TRUE(repeats.admit("b", kSecond));
  EXPECT_FALSE(repeats.admit("a", kSecond));
}

TEST(Repeats, TheTableOfCausesIsBounded) {
  Repeats repeats;
  for (size_t i = 0; i < 3 * Repeats::kMaxCauses; ++i) {
    EXPECT_TRUE(repeats.admit(std::to_string(i), kSecond));
  }
  EXPECT_EQ(repeats.size(), Repeats::kMaxCauses);
  EXPECT_FALSE(repeats.admit(std::to_string(3 * Repeats::kMaxCauses - 1), kSecond));
  EXPECT_TRUE(repeats.admit("0", kSecond)) << "forgotten";
}

TEST(Repeats, TheLogHasOneLineOfACauseAndEachOfFurtherCauses) {
  std::vector<std::string> lines;
  std::mutex mutex;
  start({.level = Level::kInfo, .format = Format::kText, .sink = [&](std::string_view line) {
           const std::lock_guard lock(mutex);
           lines.emplace_back(line);
         }});
  for (int i = 0; i < 100; ++i) {
    repeated(Level::kWarning, "192.0.2.7", "repeats test", {{"peer", i}});
    repeated(Level::kDebug, "192.0.2.7", "below the level");
  }
  repeated(Level::kWarning, "192.0.2.8", "repeats test", {{"peer", "other"}});
  stop();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].ends_with("warning repeats test peer=0")) << lines[0];
  EXPECT_TRUE(lines[1].ends_with("peer=other")) << lines[1];
}

}  // namespace
}  // namespace sluice::log
