#include "unit/latency_log.h"

#include <gtest/gtest.h>

#include "nexus/lun_fixture.h"

namespace sluice::lun {
namespace {

class LatencyLogTest : public testing::Test {
 protected:
  UnitStatistics statistics_{1};
  UnitStatistics::Shard& shard_ = statistics_.shard(0);
  UnitStatistics::Latency& reads_ = shard_.complete(Activity::kRead);
  UnitStatistics::Latency& writes_ = shard_.complete(Activity::kWrite);
  LatencyLog log_;
};

TEST_F(LatencyLogTest, NothingIsCountedBeforeTheBatchEnds) {
  log_.add({}, reads_, 100, 100);
  EXPECT_EQ(statistics_.snapshot().read_latency.count, 0u);
  log_.settle(5000);
  EXPECT_EQ(statistics_.snapshot().read_latency.count, 1u);
  log_.settle(6000);
  EXPECT_EQ(statistics_.snapshot().read_latency.count, 1u) << "and only once";
}

TEST_F(LatencyLogTest, ALatencyLastsFromTheArrivalOfTheCommandToTheEndOfTheBatch) {
  constexpr Nanos kNow = 1'000'000;
  for (const Nanos arrived : {kNow, kNow, Nanos{0}, kNow, kNow - 50'000}) {
    log_.add({}, reads_, arrived, kNow);
  }
  log_.add({}, writes_, kNow, kNow);
  log_.settle(kNow + 2000);
  const UnitSnapshot s = statistics_.snapshot();
  EXPECT_EQ(s.read_latency.count, 5u);
  EXPECT_EQ(s.read_latency.sum, 3u * 2000 + 1'002'000 + 52'000);
  EXPECT_EQ(s.read_latency.counts.at(latency_bucket(2000)), 3u);
  EXPECT_EQ(s.read_latency.counts.at(latency_bucket(1'002'000)), 1u);
  EXPECT_EQ(s.read_latency.counts.at(latency_bucket(52'000)), 1u);
  EXPECT_EQ(s.write_latency.count, 1u);
  EXPECT_EQ(s.write_latency.sum, 2000u);
}

TEST_F(LatencyLogTest, ABatchOfAnyLengthIsCountedCompletely) {
  constexpr uint64_t kEach = 2 * LatencyLog::kMostRuns;
  for (uint64_t i = 0; i < kEach; ++i) {
    log_.add({}, reads_, 0, 0);
    log_.add({}, writes_, 0, 0);
  }
  log_.settle(4096);
  const UnitSnapshot s = statistics_.snapshot();
  EXPECT_EQ(s.read_latency.count, kEach);
  EXPECT_EQ(s.write_latency.count, kEach);
}

using LatencyOfUnitTest = LunTest;

TEST_F(LatencyOfUnitTest, AUnitRemovedDuringABatchIsFreedAtTheEndOfTheBatch) {
  auto nexus = open("a");
  start(*nexus, {0x00, 0, 0, 0, 0, 0});
  const std::weak_ptr<Unit> gone = unit;
  unit = nullptr;
  auto memory = std::make_unique<TestBackend>(kBlocks * block);
  backend = memory.get();
  unit = std::make_shared<Unit>(UnitIdentity(), std::move(memory), reactors.count(), nullptr);
  target->set_luns({{0, unit}}, reactors);
  reactors.run();
  EXPECT_FALSE(gone.expired());
  latencies.settle(1000);
  EXPECT_TRUE(gone.expired());
}

TEST(LatencyBuckets, ContainTheirLatenciesAndSpanAtMostAQuarterOfTheLowerBound) {
  for (Nanos latency = 1024; latency < 60 * kSecond; latency += latency / 7 + 1) {
    const unsigned bucket = latency_bucket(latency);
    const Nanos from = latency_bucket_end(bucket - 1);
    const Nanos to = latency_bucket_end(bucket);
    EXPECT_GE(latency, from);
    EXPECT_LT(latency, to);
    EXPECT_LE(to - from, from / 4);
  }
}

}  // namespace
}  // namespace sluice::lun
