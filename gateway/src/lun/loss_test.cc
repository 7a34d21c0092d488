// A backend that was fenced under a unit of a cluster (DESIGN R4): whoever watches is told.
#include <gtest/gtest.h>

#include "lun/cluster_fixture.h"

namespace sluice::lun {
namespace {

class LossTest : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    unit->watch_loss([this](uint64_t epoch) { told.push_back(epoch); });
    serve_here(3);
    nexus = open("a");
    watch_drops(*nexus);
  }
  std::shared_ptr<Nexus> nexus;
  std::vector<uint64_t> told;
};

TEST_F(LossTest, ARequestThatFindsItFencedTellsOnceAndIsNotAnswered) {
  backend->fail_with = -EIO;
  start(*nexus, read16(0, 8));
  unit->poll_health();
  EXPECT_TRUE(told.empty()) << "not of other failures";
  backend->fail_with = -ESHUTDOWN;
  EXPECT_TRUE(start(*nexus, read16(0, 8)).command.drops_nexus);
  EXPECT_EQ(told, std::vector<uint64_t>{3});
  EXPECT_TRUE(start(*nexus, write16(0, 8), Bytes(4096)).command.drops_nexus);
  backend->fenced_now = true;
  unit->poll_health();
  EXPECT_EQ(told, std::vector<uint64_t>{3});
}

TEST_F(LossTest, AnIdleUnitsLookAtItsBackendTellsOnce) {
  unit->poll_health();
  EXPECT_TRUE(told.empty());
  backend->fenced_now = true;
  unit->poll_health();
  unit->poll_health();
  EXPECT_EQ(told, std::vector<uint64_t>{3});
}

TEST_F(LossTest, TheNextOpeningIsToldOfAnew) {
  backend->fail_with = -ESHUTDOWN;
  start(*nexus, read16(0, 8));
  const auto fenced = fence_unit();
  reactors.run();
  EXPECT_EQ(*fenced, 1);
  unit->poll_health();
  unit->tell_loss();
  EXPECT_EQ(told, std::vector<uint64_t>{3}) << "there is nothing to lose";
  serve_here(5);
  unit->poll_health();
  EXPECT_EQ(told, std::vector<uint64_t>{3});
  backend->fenced_now = true;
  unit->poll_health();
  EXPECT_EQ(told, (std::vector<uint64_t>{3, 5}));
}

TEST_F(LossTest, AFlushThatFindsItFencedTellsToo) {
  backend->fail_with = -ESHUTDOWN;
  const auto released = release_unit();
  reactors.run();
  EXPECT_EQ(*released, 0);
  EXPECT_EQ(drops, 1u);
  EXPECT_EQ(told, std::vector<uint64_t>{3});
}

}  // namespace
}  // namespace sluice::lun
