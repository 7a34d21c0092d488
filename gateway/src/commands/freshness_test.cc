// What came too late is not submitted (DESIGN R5, R6): the order of range, clock and backend.
#include <gtest/gtest.h>

#include "nexus/cluster_fixture.h"

namespace sluice::lun {
namespace {

Nanos fake_clock = 0;

class FreshTest : public ClusterTest {
 protected:
  void SetUp() override {
    fake_clock = 100;
    clock = [] { return fake_clock; };
    ClusterTest::SetUp();
    serve_here(8);
    nexus = open("a");
  }

  std::shared_ptr<Nexus> nexus;
};

TEST_F(FreshTest, AStaleCommandIsNotSubmitted) {
  Task& fresh = make(read16(0, 8));
  fresh.command.fresh_until = 100;
  begin(*nexus, fresh);
  EXPECT_EQ(fresh.command.status, scsi::Status::kGood);
  Task& stale = make(read16(0, 8));
  stale.command.fresh_until = 99;
  begin(*nexus, stale);
  EXPECT_TRUE(stale.done() && stale.command.outcome == Outcome::kStale);
  EXPECT_EQ(backend->submitted.size(), 1u);
  Task& flush = make({0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  flush.command.fresh_until = 99;
  begin(*nexus, flush);
  EXPECT_EQ(flush.command.outcome, Outcome::kStale);
  EXPECT_EQ(fate->flushes, 0u);
}

// R5, R6: first the range, then the look at the clock, then the backend.
TEST_F(FreshTest, FreshnessIsCheckedAfterTheRangeIsLocked) {
  backend->holds = true;
  start(*nexus, write16(0, 8), Bytes(4096, 1));
  Task& late = make(write16(0, 8), Bytes(4096, 2));
  late.command.fresh_until = 200;
  ASSERT_TRUE(begin(*nexus, late));
  send_data(*nexus, late);
  Task& behind = start(*nexus, write16(0, 8), Bytes(4096, 3));
  EXPECT_EQ(late.completions, 0);
  fake_clock = 201;
  backend->release_one();
  EXPECT_TRUE(late.done() && late.command.outcome == Outcome::kStale);
  backend->release_all();
  EXPECT_TRUE(behind.done()) << "its range was released";
  EXPECT_TRUE(backend->all(0, 4096, 3));
  EXPECT_EQ(backend->submitted.size(), 2u);
}

TEST_F(FreshTest, ACommandThatBecomesStaleHalfwayDropsItsNexus) {
  backend->holds = true;
  Bytes list(8 + 32);
  put_be(list, 0, 2, list.size() - 2);
  put_be(list, 2, 2, 32);
  put_be(list, 8, 8, 0);
  put_be(list, 16, 4, 8);
  put_be(list, 24, 8, 16);
  put_be(list, 32, 4, 8);
  Task& unmap = make({0x42, 0, 0, 0, 0, 0, 0, 0, 40, 0}, list);
  unmap.command.fresh_until = 200;
  ASSERT_TRUE(begin(*nexus, unmap));
  send_data(*nexus, unmap);
  ASSERT_EQ(backend->submitted.size(), 1u);
  fake_clock = 201;
  backend->release_one();
  EXPECT_TRUE(unmap.done() && unmap.command.outcome == Outcome::kUnknown);
  EXPECT_NE(unmap.command.outcome, Outcome::kStale);
  EXPECT_EQ(backend->submitted.size(), 1u);
}

TEST_F(FreshTest, AStaleCommandIsNotForwarded) {
  release_unit();
  reactors.run();
  Task& held = make(read16(0, 8));
  held.command.fresh_until = 200;
  begin(*nexus, held);
  fake_clock = 201;
  follow_to(2, 9);
  EXPECT_EQ(held.command.outcome, Outcome::kStale);
  EXPECT_TRUE(links.links.empty());
}

}  // namespace
}  // namespace sluice::lun
