#include "base/blocking_section.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace sluice {
namespace {

TEST(BlockingSectionTest, ASectionThatTwoScansSeeLasts) {
  BlockingSection::Scan scan;
  const BlockingSection section;
  EXPECT_FALSE(scan.finds_lasting());
  EXPECT_TRUE(scan.finds_lasting());
}

TEST(BlockingSectionTest, ASectionThatEndedBetweenTwoScansDoesNotLast) {
  BlockingSection::Scan scan;
  {
    const BlockingSection first;
    EXPECT_FALSE(scan.finds_lasting());
  }
  const BlockingSection second;
  EXPECT_FALSE(scan.finds_lasting());
}

TEST(BlockingSectionTest, TheEndOfAnInnerSectionDoesNotEndTheOuterOne) {
  BlockingSection::Scan scan;
  const BlockingSection outer;
  EXPECT_FALSE(scan.finds_lasting());
  {
    const BlockingSection inner;
  }
  EXPECT_TRUE(scan.finds_lasting());
}

TEST(BlockingSectionTest, SectionsOfOtherThreadsAreFoundUntilTheThreadsEnd) {
  BlockingSection::Scan scan;
  std::promise<void> begun, end;
  std::thread other([&] {
    const BlockingSection section;
    begun.set_value();
    end.get_future().wait();
  });
  begun.get_future().wait();
  EXPECT_FALSE(scan.finds_lasting());
  EXPECT_TRUE(scan.finds_lasting());
  end.set_value();
  other.join();
  EXPECT_FALSE(scan.finds_lasting());
}

}  // namespace
}  // namespace sluice
