// Limits of a volume, by a clock that the test sets.
#include "unit/bandwidth.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "nexus/cluster_fixture.h"

namespace sluice::lun {
namespace {

TEST(Bandwidth, CommandsAndBytesAreLimitedIndependently) {
  Bandwidth b;
  b.set({.iops = 10, .iops_burst = 2});
  EXPECT_TRUE(b.take(0, 1 << 30) && b.take(0, 1 << 30));
  EXPECT_FALSE(b.take(0, 0));
  EXPECT_FALSE(b.take(99 * kMillisecond, 0));
  EXPECT_TRUE(b.take(100 * kMillisecond, 0));
  b.set({.bytes_per_second = 1000});
  EXPECT_TRUE(b.take(kSecond, 3000)) << "larger than the burst: once, on credit";
  EXPECT_TRUE(b.take(kSecond, 0));
  EXPECT_FALSE(b.take(3 * kSecond, 1));
  EXPECT_TRUE(b.take(3 * kSecond + 2 * kMillisecond, 1));
}

TEST(Bandwidth, AnIdlePeriodAccumulatesNoMoreThanTheBurst) {
  Bandwidth b;
  b.set({.iops = 1000, .iops_burst = 3});
  const Nanos later = 3600 * kSecond;
  EXPECT_TRUE(b.take(later, 0) && b.take(later, 0) && b.take(later, 0));
  EXPECT_FALSE(b.take(later, 0));
}

class LimitedTest : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    serve_here(1);
    nexus = open("a");
  }
  std::shared_ptr<Nexus> nexus;
};

TEST_F(LimitedTest, CommandsOverTheLimitWaitInOrderUntilATickAdmitsThem) {
  unit->set_qos({.iops = 10, .iops_burst = 1});
  EXPECT_TRUE(start(*nexus, write16(0, 8), Bytes(4096, 1)).done());
  Task& second = start(*nexus, write16(0, 8), Bytes(4096, 2));
  Task& third = start(*nexus, write16(0, 8), Bytes(4096, 3));
  nexus->tick();
  EXPECT_EQ(second.completions, 0);
  now += 100 * kMillisecond;
  nexus->tick();
  EXPECT_TRUE(second.done());
  EXPECT_EQ(third.completions, 0);
  EXPECT_TRUE(start(*nexus, test_unit_ready()).completions == 0) << "in order, whatever it is";
  now += 100 * kMillisecond;
  nexus->tick();
  EXPECT_TRUE(third.done());
  EXPECT_TRUE(backend->all(0, 4096, 3));
}

TEST_F(LimitedTest, NexusesOnDifferentReactorsShareOneLimit) {
  auto other = open("b", 1);
  unit->set_qos({.iops = 10, .iops_burst = 1});
  EXPECT_TRUE(start(*nexus, read16(0, 8)).done());
  EXPECT_EQ(start(*other, read16(0, 8)).completions, 0);
}

TEST_F(LimitedTest, RemovingTheLimitAdmitsAllWaitingCommandsAtTheNextTick) {
  unit->set_qos({.bytes_per_second = 4096});
  start(*nexus, read16(0, 8));
  Task& held = start(*nexus, read16(0, 8));
  unit->set_qos({});
  EXPECT_EQ(held.completions, 0);
  nexus->tick();
  EXPECT_TRUE(held.done());
  EXPECT_TRUE(start(*nexus, read16(0, 8)).done());
}

TEST_F(LimitedTest, MoreCommandsThanCanWaitEndWithTaskSetFull) {
  unit->set_qos({.iops = 1});
  EXPECT_TRUE(start(*nexus, read16(0, 1)).done());
  for (unsigned i = 0; i < limits::kMaxHeldPerUnit; ++i) {
    ASSERT_EQ(start(*nexus, read16(0, 1)).completions, 0);
  }
  EXPECT_EQ(start(*nexus, read16(0, 1)).command.status, scsi::Status::kTaskSetFull);
}

TEST_F(LimitedTest, ACommandWaitingForBandwidthDoesNotExpireAndIsForwardedAfterAMove) {
  unit->set_qos({.iops = 1});
  start(*nexus, read16(0, 1));
  Task& read = start(*nexus, read16(0, 1));
  Task& next = start(*nexus, read16(0, 1));
  now += limits::kHoldCommands;
  nexus->tick();
  EXPECT_TRUE(read.done());
  EXPECT_EQ(next.completions, 0);
  release_unit();
  reactors.run();
  follow_to(2, 2);
  EXPECT_EQ(links.last().started.size(), 1u);
}

Nanos fake_clock = 0;

// Of a gateway that forwards: they live as long as their token.
class LimitedForwardedTest : public LimitedTest {
 protected:
  void SetUp() override {
    fake_clock = now = kSecond;
    clock = [] { return fake_clock; };
    LimitedTest::SetUp();
    unit->set_qos({.iops = 10, .iops_burst = 1});
  }
  Task& forwarded(Bytes cdb, Nanos life = limits::kTokenLife) {
    Task& task = make(std::move(cdb));
    task.command.epoch = 1;
    task.command.fresh_until = now + life;
    EXPECT_FALSE(begin(*nexus, task));
    return task;
  }
  void advance(Nanos span) {
    now += span;
    fake_clock = now;
    nexus->tick();
  }
};

// As stale they would be retried, and use up the bandwidth of all hosts.
TEST_F(LimitedForwardedTest, ExcessCommandsEndWithTaskSetFullAndTheRestRunAtTheLimit) {
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 4; ++i) forwarded(read16(0, 8));
    advance(limits::kTick);
  }
  advance(limits::kTokenLife + limits::kTick);
  unsigned good = 0;
  unsigned full = 0;
  for (const auto& task : tasks) {
    ASSERT_TRUE(task->done());
    EXPECT_EQ(task->command.outcome, Outcome::kAnswered);
    good += task->command.status == scsi::Status::kGood;
    full += task->command.status == scsi::Status::kTaskSetFull;
  }
  EXPECT_GE(good, 40u);
  EXPECT_EQ(good + full, tasks.size());
  EXPECT_EQ(backend->submitted.size(), good);
}

TEST_F(LimitedForwardedTest, AnExpiredCommandConsumesNoBandwidth) {
  EXPECT_EQ(forwarded(read16(0, 8), -1).command.status, scsi::Status::kTaskSetFull);
  EXPECT_TRUE(start(*nexus, read16(0, 8)).done());
}

TEST_F(LimitedForwardedTest, ExpiredWaitingCommandsOfAnyKindEndWithTaskSetFull) {
  forwarded(read16(0, 8));
  Task& read = forwarded(read16(0, 8), kMillisecond);
  Task& look = forwarded(test_unit_ready(), kMillisecond);
  EXPECT_EQ(look.completions, 0);
  unit->set_qos({});
  advance(limits::kTick);
  EXPECT_EQ(read.command.status, scsi::Status::kTaskSetFull);
  EXPECT_EQ(look.command.status, scsi::Status::kTaskSetFull);
  EXPECT_EQ(backend->submitted.size(), 1u);
}

}  // namespace
}  // namespace sluice::lun
