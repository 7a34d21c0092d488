#include "unit/ranges/range_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/limits.h"
#include "unit/test_reactors.h"

namespace sluice::lun {
namespace {

struct Held {
  RangeHold hold;
  int grants = 0;

  Held(uint64_t first, uint64_t last, bool exclusive) {
    hold.first = first;
    hold.last = last;
    hold.exclusive = exclusive;
    hold.context = this;
    hold.on_grant = [](RangeHold& h) { ++static_cast<Held*>(h.context)->grants; };
  }
};

class RangeTableTest : public testing::TestWithParam<unsigned> {
 protected:
  bool acquire(unsigned reactor, Held& held) {
    return table->acquire(reactor, held.hold, &reactors);
  }
  void release(unsigned reactor, Held& held) {
    table->release(reactor, held.hold, &reactors);
    reactors.run();
  }

  TestReactors reactors{4};
  std::shared_ptr<RangeTable> table = std::make_shared<RangeTable>(4);
};

TEST_F(RangeTableTest, HoldsThatDoNotOverlapRunTogether) {
  Held a(0, 7, true);
  Held b(8, 15, true);
  EXPECT_TRUE(acquire(0, a));
  EXPECT_TRUE(acquire(0, b));
}

TEST_F(RangeTableTest, ReadsOfTheSameBlocksRunTogetherOnOneReactorAndOnTwo) {
  Held a(0, 7, false);
  Held b(0, 7, false);
  Held c(4, 20, false);
  EXPECT_TRUE(acquire(0, a));
  EXPECT_TRUE(acquire(0, b));
  EXPECT_TRUE(acquire(1, c));
}

TEST_F(RangeTableTest, AWriteWaitsForAnOverlappingReadOfItsOwnReactor) {
  Held read(0, 7, false);
  Held write(7, 9, true);
  EXPECT_TRUE(acquire(0, read));
  EXPECT_FALSE(acquire(0, write));
  release(0, read);
  EXPECT_EQ(write.grants, 1);
  EXPECT_TRUE(write.hold.granted);
}

TEST_F(RangeTableTest, AWriteWaitsForAnOverlappingWriteOfAnotherReactor) {
  Held a(0, 7, true);
  Held b(7, 9, true);
  EXPECT_TRUE(acquire(1, a));
  EXPECT_FALSE(acquire(0, b));
  EXPECT_FALSE(b.hold.granted);
  release(1, a);
  EXPECT_EQ(b.grants, 1);
}

TEST_F(RangeTableTest, AReadWaitsForAWriteOfAnotherReactor) {
  Held write(0, 7, true);
  Held read(3, 3, false);
  EXPECT_TRUE(acquire(2, write));
  EXPECT_FALSE(acquire(3, read));
  release(2, write);
  EXPECT_EQ(read.grants, 1);
}

TEST_F(RangeTableTest, LaterReadersDoNotStarveAWriterOfTheirReactor) {
  Held first(0, 7, false);
  Held writer(0, 7, true);
  Held later(0, 7, false);
  EXPECT_TRUE(acquire(0, first));
  EXPECT_FALSE(acquire(0, writer));
  EXPECT_FALSE(acquire(0, later));
  release(0, first);
  EXPECT_EQ(writer.grants, 1);
  EXPECT_EQ(later.grants, 0);
  release(0, writer);
  EXPECT_EQ(later.grants, 1);
}

TEST_F(RangeTableTest, LaterReadersDoNotStarveAWriterOfAnotherReactor) {
  Held first(0, 7, false);
  Held writer(0, 7, true);
  Held later(0, 7, false);
  EXPECT_TRUE(acquire(0, first));
  EXPECT_FALSE(acquire(1, writer));
  EXPECT_FALSE(acquire(0, later));
  release(0, first);
  EXPECT_EQ(writer.grants, 1);
  EXPECT_EQ(later.grants, 0);
  release(1, writer);
  EXPECT_EQ(later.grants, 1);
}

TEST_F(RangeTableTest, AWaitingHoldDoesNotDelayADisjointHold) {
  Held a(0, 7, true);
  Held b(0, 7, true);
  Held c(8, 9, true);
  EXPECT_TRUE(acquire(0, a));
  EXPECT_FALSE(acquire(0, b));
  EXPECT_TRUE(acquire(0, c));
}

TEST_F(RangeTableTest, CancellingAWaitingHoldGrantsTheHoldsBehindIt) {
  Held read(0, 7, false);
  Held write(0, 7, true);
  Held behind(0, 7, false);
  EXPECT_TRUE(acquire(0, read));
  EXPECT_FALSE(acquire(0, write));
  EXPECT_FALSE(acquire(0, behind));
  table->cancel(0, write.hold, &reactors);
  EXPECT_EQ(write.grants, 0);
  EXPECT_EQ(behind.grants, 1);
}

TEST_F(RangeTableTest, AHoldWaitingForAnotherReactorCanBeCancelled) {
  Held a(0, 7, true);
  Held b(0, 7, true);
  Held c(0, 7, true);
  EXPECT_TRUE(acquire(0, a));
  EXPECT_FALSE(acquire(1, b));
  EXPECT_FALSE(acquire(2, c));
  table->cancel(1, b.hold, &reactors);
  release(0, a);
  EXPECT_EQ(b.grants, 0);
  EXPECT_EQ(c.grants, 1);
}

TEST_F(RangeTableTest, GrantsInOrderOfArrivalAcrossReactors) {
  Held a(0, 7, true);
  Held b(0, 7, true);
  Held c(0, 7, true);
  EXPECT_TRUE(acquire(0, a));
  EXPECT_FALSE(acquire(3, b));
  EXPECT_FALSE(acquire(1, c));
  release(0, a);
  EXPECT_EQ(b.grants, 1);
  EXPECT_EQ(c.grants, 0);
  release(3, b);
  EXPECT_EQ(c.grants, 1);
}

TEST_F(RangeTableTest, AFullTableQueuesHoldsAndGrantsThemOneByOne) {
  std::vector<std::unique_ptr<Held>> all;
  for (unsigned i = 0; i < limits::kMaxInFlightPerUnit; ++i) {
    all.push_back(std::make_unique<Held>(i, i, true));
    ASSERT_TRUE(acquire(0, *all.back()));
  }
  Held one(5000, 5000, true);
  Held two(5001, 5001, true);
  EXPECT_FALSE(acquire(0, one));
  EXPECT_FALSE(acquire(0, two));
  EXPECT_EQ(table->holding(0), limits::kMaxInFlightPerUnit);
  release(0, *all[10]);
  EXPECT_EQ(one.grants, 1);
  EXPECT_EQ(two.grants, 0);
  release(0, *all[11]);
  EXPECT_EQ(two.grants, 1);
}

// Each on_grant releases its hold at once, as a command on a memory LUN does.
TEST_F(RangeTableTest, GrantingALongChainOfWaitersDoesNotRecurse) {
  static int depth;
  static int deepest;
  static RangeTable* shared;
  depth = deepest = 0;
  shared = table.get();
  Held first(0, 0, true);
  ASSERT_TRUE(acquire(0, first));
  std::vector<std::unique_ptr<Held>> all;
  for (int i = 0; i < 1000; ++i) {
    all.push_back(std::make_unique<Held>(0, 0, true));
    all.back()->hold.on_grant = [](RangeHold& h) {
      deepest = std::max(deepest, ++depth);
      ++static_cast<Held*>(h.context)->grants;
      shared->release(0, h, nullptr);
      --depth;
    };
    ASSERT_FALSE(acquire(0, *all.back()));
  }
  release(0, first);
  EXPECT_EQ(deepest, 1);
  for (const auto& held : all) EXPECT_EQ(held->grants, 1);
  EXPECT_EQ(table->holding(0), 0u);
  EXPECT_EQ(table->waiting(0), 0u);
}

}  // namespace
}  // namespace sluice::lun
