// WCE from on to off: success is reported only after cached data is durable, and nothing blocks.
#include "unit/write_cache.h"

#include <gtest/gtest.h>

#include "nexus/lun_fixture.h"

namespace sluice::lun {
namespace {

using backend::Op;
using scsi::Status;

// Runs what is posted at once, like a reactor that never sleeps.
class PromptReactors final : public Reactors {
 public:
  unsigned count() const override { return 1; }
  unsigned current() const override { return 0; }
  void post(unsigned, std::function<void()> task) override { task(); }
};

class WriteCacheTest : public LunTest {
 protected:
  static constexpr uint8_t kWce = 0x04;

  void SetUp() override {
    LunTest::SetUp();
    a = open("a", 0);
    b = open("b", 1);
    backend->cache = true;  // off by default
    page_ = caching_page(*a);
  }
  Bytes caching_page(Nexus& nexus) {
    return start(nexus, Bytes{0x1a, 0x08, 0x08, 0, 252, 0}).answer();
  }
  bool reported_on(Nexus& nexus) { return caching_page(nexus).at(4 + 2) & kWce; }
  Task& select(Nexus& nexus, bool on) {
    Bytes page = page_;
    page[0] = page[2] = 0;
    page[4] &= 0x3f;  // PS
    page[4 + 2] = static_cast<uint8_t>(on ? page[4 + 2] | kWce : page[4 + 2] & ~kWce);
    return start(nexus, Bytes{0x15, 0x10, 0, 0, static_cast<uint8_t>(page.size()), 0}, page);
  }
  size_t flushes() const {
    size_t n = 0;
    for (const auto& record : backend->submitted) n += record.op == Op::kFlush;
    return n;
  }

  std::shared_ptr<Nexus> a;
  std::shared_ptr<Nexus> b;

 private:
  Bytes page_;
};

TEST_F(WriteCacheTest, ModeSelectCompletesOnlyAfterTheFlush) {
  backend->holds = true;
  Task& off = select(*a, false);
  EXPECT_EQ(off.completions, 0);
  ASSERT_EQ(flushes(), 1u);
  EXPECT_FALSE(backend->cache) << "what is written now is durable";
  EXPECT_TRUE(reported_on(*b)) << "what was written before isn't yet";
  EXPECT_EQ(select(*b, false).command.status, Status::kBusy);
  EXPECT_EQ(start(*b, test_unit_ready()).command.status, Status::kGood) << "reported too early";
  backend->release_all();
  EXPECT_TRUE(off.done());
  EXPECT_EQ(off.command.status, Status::kGood);
  EXPECT_EQ(start(*b, test_unit_ready()).sense(), 0x062a01u);
  EXPECT_FALSE(reported_on(*b));
  EXPECT_EQ(select(*b, false).command.status, Status::kGood);
  EXPECT_EQ(flushes(), 1u);
}

TEST_F(WriteCacheTest, AFailedFlushFailsModeSelectAndLeavesTheCacheOn) {
  backend->holds = true;
  Task& off = select(*a, false);
  backend->fail_with = -EIO;
  backend->release_all();
  EXPECT_EQ(off.command.status, Status::kCheckCondition);
  EXPECT_EQ(off.sense(), 0x030c00u) << std::hex << off.sense();
  EXPECT_TRUE(backend->cache && reported_on(*a));
  EXPECT_EQ(start(*b, test_unit_ready()).command.status, Status::kGood) << "nothing changed";
}

// One that came meanwhile, from a reactor that hadn't seen the first yet.
TEST_F(WriteCacheTest, ConcurrentRequestsToDisableTheCacheReceiveTheSameResult) {
  for (const int64_t fate : {-EIO, 0}) {
    backend->cache = backend->holds = true;
    backend->fail_with = fate;
    Task& one = select(*a, false);
    int64_t other = 1;
    ASSERT_TRUE(disable_write_cache(*unit, b->reactor_context(),
                                    [&](const backend::Io& io) { other = io.result; }));
    backend->release_one();
    backend->fail_with = -EIO - fate;
    backend->release_all();
    reactors.run();
    EXPECT_EQ(one.command.status == Status::kGood, fate == 0);
    EXPECT_EQ(other, fate);
    EXPECT_EQ(backend->cache, fate != 0) << "as reported";
  }
}

TEST_F(WriteCacheTest, EnablingTheCacheWaitsUntilADisablingHasCompleted) {
  backend->holds = true;
  Task& off = select(*a, false);
  EXPECT_EQ(enable_write_cache(*unit), std::nullopt);
  EXPECT_FALSE(backend->cache);
  backend->release_all();
  EXPECT_TRUE(off.done());
  EXPECT_EQ(enable_write_cache(*unit), true);
}

TEST_F(WriteCacheTest, SenseDataOfAFailedFlushIsPassedThroughUnchanged) {
  backend->fail_with = -EIO;
  backend->answer.status = static_cast<uint8_t>(Status::kCheckCondition);
  backend->answer.sense_size = 18;
  backend->answer.sense = {0x70, 0, 0x04, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x44, 0x01};
  EXPECT_EQ(select(*a, false).sense(), 0x044401u);
  EXPECT_TRUE(backend->cache);
}

// A device that was sent a write before may end it after the flush.
TEST_F(WriteCacheTest, TheFlushWaitsForEarlierWritesAndDoesNotDelayLaterOnes) {
  backend->holds = true;
  start(*a, write16(0, 1), Bytes(512));
  Task& off = select(*a, false);
  EXPECT_EQ(flushes(), 0u);
  backend->release_one();
  ASSERT_EQ(flushes(), 1u);
  Task& later = start(*a, write16(0, 1), Bytes(512));
  EXPECT_EQ(backend->submitted.back().op, Op::kWrite);
  backend->release_one();
  EXPECT_TRUE(off.done());
  backend->release_one();
  EXPECT_TRUE(later.done());
}

TEST_F(WriteCacheTest, EnablingTheCacheDoesNotFlush) {
  ASSERT_TRUE(select(*a, false).done());
  ASSERT_EQ(flushes(), 1u);
  EXPECT_EQ(select(*a, true).command.status, Status::kGood);
  EXPECT_TRUE(backend->cache);
  EXPECT_EQ(flushes(), 1u);
}

TEST_F(WriteCacheTest, AResetThatDisablesTheCacheCompletesAfterTheFlush) {
  backend->holds = true;
  int finished = 0;
  a->logical_unit_reset(0, [&finished](bool) { ++finished; });
  reactors.run();
  EXPECT_EQ(finished, 0);
  ASSERT_EQ(flushes(), 1u);
  backend->release_all();
  reactors.run();
  EXPECT_EQ(finished, 1);
  EXPECT_FALSE(backend->cache);
}

TEST_F(WriteCacheTest, AResetThatAbortsAModeSelectLeavesTheCacheOff) {
  backend->holds = true;
  Task& off = select(*a, false);
  int finished = 0;
  b->logical_unit_reset(0, [&finished](bool) { ++finished; });
  reactors.run();
  EXPECT_EQ(finished, 0);
  backend->release_all();
  reactors.run();
  EXPECT_EQ(finished, 1);
  EXPECT_TRUE(off.done() && off.command.aborted());
  EXPECT_FALSE(backend->cache || unit->cache_settling());
}

TEST_F(WriteCacheTest, AResetWhoseFlushFailsLeavesTheCacheOn) {
  backend->fail_with = -EIO;
  a->logical_unit_reset(0, [](bool) {});
  reactors.run();
  EXPECT_TRUE(backend->cache);
}

TEST_F(WriteCacheTest, ControlThreadsWaitForTheFlushAndReceiveItsFailure) {
  PromptReactors prompt;
  auto c = Nexus::open(target, {.initiator_name = "iqn.2026-11.test:c"},
                       {&aio, &pool, &prompt, 0, &now, &latencies}, false);
  ASSERT_NE(c->use(0), nullptr);
  EXPECT_TRUE(set_write_cache(*unit, false).ok());
  EXPECT_EQ(flushes(), 1u);
  EXPECT_FALSE(unit->write_cache());
  EXPECT_TRUE(set_write_cache(*unit, true).ok());
  EXPECT_EQ(flushes(), 1u);
  backend->fail_with = -EIO;
  const Result<void> failed = set_write_cache(*unit, false);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().find("Input/output error"), std::string::npos);
  EXPECT_TRUE(unit->write_cache() && !unit->cache_settling());
  c->close(false, [] {});
}

// With a cache that is on when the unit is opened.
class CachedTest : public WriteCacheTest {
  void prepare_backend(TestBackend& memory) override { memory.cache = true; }
};

TEST_F(CachedTest, AResetRestoresTheCacheSettingOfTheAdministrator) {
  const auto reset = [this] {
    a->logical_unit_reset(0, [](bool) {});
    reactors.run();
    EXPECT_EQ(start(*a, test_unit_ready()).sense(), 0x062903u);
  };
  ASSERT_TRUE(select(*a, false).done());
  ASSERT_FALSE(backend->cache);
  reset();
  EXPECT_TRUE(backend->cache);
  // Off already, by a host: from now on for good.
  ASSERT_TRUE(select(*a, false).done());
  ASSERT_FALSE(backend->cache);
  ASSERT_TRUE(set_write_cache(*unit, false).ok());
  reset();
  EXPECT_FALSE(backend->cache);
  ASSERT_TRUE(set_write_cache(*unit, true).ok());
  reset();
  EXPECT_TRUE(backend->cache);
}

TEST_F(CachedTest, AResetThatEnablesTheCacheCompletesAfterADisablingFlush) {
  backend->holds = true;
  int64_t off = 1;
  ASSERT_TRUE(disable_write_cache(*unit, b->reactor_context(),
                                  [&](const backend::Io& io) { off = io.result; }));
  int finished = 0;
  a->logical_unit_reset(0, [&finished](bool) { ++finished; });
  reactors.run();
  EXPECT_EQ(finished, 0);
  EXPECT_FALSE(backend->cache) << "the nexus that disabled it has no answer yet";
  backend->release_all();
  reactors.run();
  EXPECT_EQ(off, 0);
  EXPECT_EQ(finished, 1);
  EXPECT_TRUE(backend->cache);
}

TEST_F(WriteCacheTest, ChangingAFixedCacheIsRefused) {
  backend->cache_changeable = false;
  EXPECT_EQ(select(*a, false).sense(), 0x052600u);
  EXPECT_FALSE(set_write_cache(*unit, false).ok());
  EXPECT_FALSE(unit->cache_settling());
  EXPECT_EQ(flushes(), 0u);
}

}  // namespace
}  // namespace sluice::lun
