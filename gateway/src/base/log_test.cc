#include "base/log.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <mutex>
#include <vector>

#include "base/limits.h"

namespace sluice::log {
namespace {

constexpr int64_t kNoon = 1'795'262'400'123'456'789;

TEST(LogLine, TextCarriesTimeLevelMessageAndFields) {
  EXPECT_EQ(render(Format::kText, kNoon, Level::kInfo, "session opened",
                   {{"initiator", "iqn.2026-11.example:a"}, {"session", 3u}, {"itt", Hex{255}}}),
            "2026-11-21T12:00:00.123456Z info    session opened initiator=iqn.2026-11.example:a "
            "session=3 itt=0xff");
}

TEST(LogLine, JsonCarriesTheSameFieldsWithTheirTypes) {
  EXPECT_EQ(render(Format::kJson, kNoon, Level::kWarning, "odd",
                   {{"n", -1}, {"yes", true}, {"itt", Hex{16}}, {"who", "a b"}}),
            R"({"time":"2026-11-21T12:00:00.123456Z","level":"warning","msg":"odd","n":-1,)"
            R"("yes":true,"itt":"0x10","who":"a b"})");
}

TEST(LogLine, ValuesOfAPeerCannotForgeLinesOrFields) {
  EXPECT_EQ(render(Format::kText, kNoon, Level::kInfo, "x", {{"name", "a\nb c=d\"\x80\x1b"}}),
            "2026-11-21T12:00:00.123456Z info    x name=\"a\\nb c=d\\\"\\x80\\x1b\"");
  EXPECT_EQ(render(Format::kJson, kNoon, Level::kInfo, "x", {{"name", "\"},\x80"}}),
            R"({"time":"2026-11-21T12:00:00.123456Z","level":"info","msg":"x",)"
            R"("name":"\"},\u0080"})");
}

class LogOutput : public testing::Test {
 protected:
  void open(Level level) {
    start({.level = level, .format = Format::kText, .sink = [this](std::string_view line) {
             const std::lock_guard lock(mutex_);
             lines_.emplace_back(line);
           }});
  }
  void TearDown() override { stop(); }

  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_F(LogOutput, StopWritesAllQueuedLines) {
  open(Level::kInfo);
  for (int i = 0; i < 100; ++i) info("line");
  stop();
  EXPECT_EQ(lines_.size(), 100u);
}

TEST_F(LogOutput, IncludesMessagesLoggedThroughSpdlog) {
  open(Level::kInfo);
  spdlog::info("login session={} name={}", 3, "a\nb");
  spdlog::debug("quiet");
  stop();
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_TRUE(lines_[0].ends_with("Z info    login session=3 name=a\\nb")) << lines_[0];
}

TEST_F(LogOutput, LinesBelowTheLevelAreOmitted) {
  open(Level::kWarning);
  info("quiet");
  warning("loud");
  stop();
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("loud"), std::string::npos);
}

TEST_F(LogOutput, AFloodOfLinesIsRateLimitedButErrorsPass) {
  open(Level::kInfo);
  // Two windows of the clock may be touched, hardly more.
  for (unsigned i = 0; i < 20 * limits::kLogLinesPerSecond; ++i) info("flood");
  error("kept");
  stop();
  EXPECT_LT(lines_.size(), 19 * limits::kLogLinesPerSecond);
  EXPECT_NE(lines_.back().find("kept"), std::string::npos);
}

}  // namespace
}  // namespace sluice::log
