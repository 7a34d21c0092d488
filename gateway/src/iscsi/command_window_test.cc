#include "iscsi/command_window.h"

#include <gtest/gtest.h>

namespace sluice::iscsi {
namespace {

using Verdict = CommandWindow::Verdict;

TEST(CommandWindow, AcceptsTheExpectedNumberHoldsEarlyNumbersAndIgnoresOthers) {
  const CommandWindow w(100, 8);
  EXPECT_EQ(w.judge(100), Verdict::kNext);
  EXPECT_EQ(w.judge(101), Verdict::kEarly);
  EXPECT_EQ(w.judge(107), Verdict::kEarly);
  EXPECT_EQ(w.judge(108), Verdict::kOutside);
  EXPECT_EQ(w.judge(99), Verdict::kOutside);
}

TEST(CommandWindow, ClosesWhileCommandsAreOpenAndNeverShrinks) {
  CommandWindow w(1, 3);
  uint32_t highest = w.max();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(w.judge(w.expected()), Verdict::kNext);
    w.advance();
    EXPECT_EQ(w.max(), highest);
  }
  EXPECT_EQ(w.max(), w.expected() - 1) << "closed";
  EXPECT_EQ(w.judge(w.expected()), Verdict::kOutside);
  w.release();
  EXPECT_EQ(w.max(), highest + 1);
  EXPECT_EQ(w.judge(w.expected()), Verdict::kNext);
}

TEST(CommandWindow, WrapsAroundTheEndOfTheNumbers) {
  CommandWindow w(0xfffffffe, 4);
  EXPECT_EQ(w.max(), 1u);
  EXPECT_EQ(w.judge(0xffffffff), Verdict::kEarly);
  EXPECT_EQ(w.judge(1), Verdict::kEarly);
  EXPECT_EQ(w.judge(2), Verdict::kOutside);
  for (const uint32_t sn : {0xfffffffeu, 0xffffffffu, 0u, 1u}) {
    EXPECT_EQ(w.judge(sn), Verdict::kNext) << sn;
    w.advance();
    w.release();
  }
  EXPECT_EQ(w.judge(0xffffffff), Verdict::kOutside);
}

}  // namespace
}  // namespace sluice::iscsi
