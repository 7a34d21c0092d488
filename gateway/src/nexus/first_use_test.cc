// LUNs that a session has not used yet: their unit attentions at the first use, and their state
// until then (gateway/decisions/logical-units.md).
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>

#include "nexus/cluster_fixture.h"
#include "nexus/first_use_fixture.h"
#include "unit/attention_log.h"

namespace sluice::lun {
namespace {

TEST_F(FirstUseTest, ASessionOfTheMaximumNumberOfLunsCreatesItlsOnlyForUsedLuns) {
  std::vector<Target::LunEntry> luns;
  for (uint64_t lun = 0; lun < limits::kMaxLuns; ++lun) luns.push_back({lun, unit});
  map(luns);
  auto fresh = open_fresh("fresh");
  EXPECT_EQ(fresh->itls().size(), 0u);
  EXPECT_EQ(fresh->lun_numbers().size(), limits::kMaxLuns);
  EXPECT_EQ(
      load_be32(start(*fresh, report_luns(), {}, scsi::kReportLunsWellKnownLun).answer().data()),
      8 * limits::kMaxLuns);
  EXPECT_EQ(fresh->itls().size(), 0u);
  for (const uint64_t lun : {uint64_t{0}, uint64_t{255}, uint64_t{limits::kMaxLuns - 1}}) {
    EXPECT_EQ(told(*fresh, scsi::lun_field(lun)), Told{kPowerOn});
  }
  start(*fresh, read16(0, 1));
  start(*fresh, test_unit_ready(), {}, scsi::lun_field(limits::kMaxLuns));
  EXPECT_EQ(fresh->itls().size(), 3u);
  map(luns);
  EXPECT_EQ(fresh->itls().size(), 3u) << "nor does a reload make any";
}

TEST_F(FirstUseTest, EveryLunReportsTheSessionsFirstAttentionHoweverLateItIsUsed) {
  map({{0, unit}, {5, unit}});
  auto lost = open_fresh("lost");
  lost->close(true, [] {});
  reactors.run();
  auto next = open_fresh("lost");
  EXPECT_EQ(told(*next), Told{kNexusLoss});
  EXPECT_EQ(told(*next, kFive), Told{kNexusLoss});
  EXPECT_EQ(told(*open_forwarded("far"), kFive), Told{}) << "its own gateway reported it";
}

TEST_F(FirstUseTest, AnAttentionRaisedBeforeTheSessionIsNotReported) {
  unit->attached().raise(kCapacityChanged, nullptr);
  EXPECT_EQ(told(*open_fresh("fresh")), Told{kPowerOn});
}

TEST_F(FirstUseTest, AChangedCapacityIsReportedOnceAtTheFirstUse) {
  auto fresh = open_fresh("fresh");
  ASSERT_TRUE(unit->resize(2 * kBlocks * block).ok());
  ASSERT_TRUE(unit->resize(3 * kBlocks * block).ok());
  EXPECT_EQ(told(*fresh), (Told{kPowerOn, 0x062a09}));
  EXPECT_EQ(told(*fresh), Told{});
}

TEST_F(FirstUseTest, AModeParameterChangeByAnotherNexusIsReportedAtTheFirstUse) {
  auto fresh = open_fresh("fresh");
  toggle_write_protection(*a);
  EXPECT_EQ(told(*fresh), (Told{kPowerOn, kModeChanged}));
  EXPECT_EQ(told(*a), Told{}) << "who changed them";
}

TEST_F(FirstUseTest, AResetBeforeTheFirstUseIsReportedAsUnitAttention) {
  auto fresh = open_fresh("fresh");
  reset_by(*a);
  EXPECT_EQ(told(*fresh), (Told{kPowerOn, kDeviceReset}));
}

TEST_F(FirstUseTest, TaskManagementReachesLunsThatWereNotUsed) {
  map({{0, unit}, {5, unit}});
  auto fresh = open_fresh("fresh");
  int done = 0;
  const auto note = [&](auto...) { ++done; };
  EXPECT_TRUE(fresh->has_lun(kFive));
  EXPECT_TRUE(fresh->abort_task_set(kFive, note));
  EXPECT_TRUE(fresh->clear_task_set(kFive, note));
  EXPECT_TRUE(fresh->logical_unit_reset(0, note));
  fresh->target_reset(note);
  EXPECT_FALSE(fresh->abort_task_set(scsi::lun_field(6), note));
  EXPECT_FALSE(fresh->logical_unit_reset(scsi::lun_field(6), note));
  reactors.run();
  EXPECT_EQ(done, 4);
  EXPECT_EQ(told(*fresh), (Told{kPowerOn, kDeviceReset}));
  UnitAttention ua;
  EXPECT_TRUE(open_fresh("asks")->peek_unit_attention(0, &ua));
  EXPECT_EQ(ua, (UnitAttention{0x29, 0x00}));
}

TEST_F(FirstUseTest, ATargetResetAbortsCommandsAtLunsThatItsSenderHasNotUsed) {
  auto fresh = open_fresh("fresh");
  backend->holds = true;
  Task& theirs = start(*a, read16(0, 1));
  bool done = false;
  fresh->target_reset([&](bool at_owner) { done = at_owner; });
  reactors.run();
  EXPECT_FALSE(done);
  backend->release_all();
  reactors.run();
  EXPECT_TRUE(done);
  EXPECT_EQ(theirs.command.status, Status::kTaskAborted);
}

TEST_F(FirstUseTest, APreemptBeforeTheFirstUseIsReportedToPreemptedRegistrants) {
  enlist(*a, 1);
  enlist(*b, 2);
  reserve(*b, 2, scsi::PrType::kWriteExclusive);
  b->close(false, [] {});
  reactors.run();
  auto again = open_fresh("b", 1);
  auto fresh = open_fresh("fresh");
  ASSERT_EQ(out(*a, PrOutAction::kPreemptAndAbort,
                {.key = 1, .service_action_key = 2, .type = scsi::PrType::kExclusiveAccess}),
            Status::kGood);
  EXPECT_EQ(attention(*again), kPowerOn);
  EXPECT_EQ(attention(*again), 0x062a05u) << "REGISTRATIONS PREEMPTED";
  EXPECT_FALSE(reads(*again));
  EXPECT_EQ(attention(*fresh), kPowerOn);
  EXPECT_EQ(attention(*fresh), 0u) << "it was never registered";
  EXPECT_FALSE(reads(*fresh));
}

TEST_F(FirstUseTest, AReleaseBeforeTheFirstUseIsReportedToRegistrants) {
  enlist(*a, 1);
  enlist(*b, 2);
  reserve(*a, 1, scsi::PrType::kWriteExclusiveRegistrantsOnly);
  b->close(false, [] {});
  reactors.run();
  auto again = open_fresh("b", 1);
  ASSERT_EQ(out(*a, PrOutAction::kRelease,
                {.key = 1, .type = scsi::PrType::kWriteExclusiveRegistrantsOnly}),
            Status::kGood);
  EXPECT_EQ(told(*again), (Told{kPowerOn, 0x062a04}));
  EXPECT_EQ(told(*open_fresh("b", 1)), Told{kPowerOn}) << "a later session";
}

TEST_F(FirstUseTest, AReservationMadeBeforeTheFirstUseConflicts) {
  auto fresh = open_fresh("fresh");
  ASSERT_EQ(reserve6(*a), Status::kGood);
  EXPECT_EQ(told(*fresh), Told({kPowerOn}));
  EXPECT_FALSE(reads(*fresh));
}

TEST_F(FirstUseTest, TheEndOfANexusReleasesItsReserve6OfALunMovedToAnUnusedNumber) {
  ASSERT_EQ(reserve6(*a), Status::kGood);
  map({{5, unit}});
  ASSERT_TRUE(a->itls().empty());
  a->close(false, [] {});
  reactors.run();
  told(*b, kFive);
  EXPECT_EQ(run(start(*b, read16(0, 1), {}, kFive)).command.status, Status::kGood);
}

TEST_F(FirstUseTest, ALunRemovedBeforeItsFirstUseIsNotSupported) {
  map({{0, unit}, {5, unit}});
  auto fresh = open_fresh("fresh");
  map({{0, unit}});
  EXPECT_EQ(run(start(*fresh, test_unit_ready(), {}, kFive)).sense(), 0x052500u);
  EXPECT_FALSE(fresh->has_lun(kFive));
  EXPECT_EQ(fresh->itls().size(), 0u);
  EXPECT_EQ(told(*fresh), (Told{kPowerOn, kInventoryChanged}));
}

TEST_F(FirstUseTest, AUnitRemovedBeforeItsFirstUseIsDestroyed) {
  auto fresh = open_fresh("fresh");
  const std::weak_ptr<Unit> gone = unit;
  backend = nullptr;
  unit.reset();
  map({});
  for (auto& nexus : {a, b, c}) nexus->close(false, [] {});
  reactors.run();
  EXPECT_TRUE(gone.expired());
}

TEST_F(FirstUseTest, AnAddedLunReportsTheInventoryChangeAndNoOlderAttention) {
  auto fresh = open_fresh("fresh");
  unit->attached().raise(kCapacityChanged, nullptr);
  map({{0, unit}, {5, unit}});
  EXPECT_EQ(told(*fresh, kFive), Told{kInventoryChanged});
  EXPECT_EQ(told(*fresh), (Told{kPowerOn, kInventoryChanged, 0x062a09}));
}

TEST_F(FirstUseTest, ALunMovedBeforeItsFirstUseIsANewLun) {
  auto fresh = open_fresh("fresh");
  map({{5, unit}});
  unit->attached().raise(kCapacityChanged, nullptr);
  EXPECT_EQ(run(start(*fresh, test_unit_ready())).sense(), 0x052500u);
  EXPECT_EQ(told(*fresh, kFive), (Told{kInventoryChanged, 0x062a09}));
}

TEST_F(FirstUseTest, ALunRemovedAndAddedAgainBeforeItsFirstUseReportsTheInventoryChange) {
  auto fresh = open_fresh("fresh");
  target->set_luns({}, reactors);
  target->set_luns({{0, unit}}, reactors);
  reactors.run();
  EXPECT_EQ(told(*fresh), Told{kInventoryChanged});
}

TEST_F(FirstUseTest, ReportLunsClearsTheInventoryAttentionOfLunsNotUsedYet) {
  auto fresh = open_fresh("fresh");
  map({{0, unit}, {5, unit}});
  start(*fresh, report_luns(), {}, scsi::kReportLunsWellKnownLun);
  EXPECT_EQ(told(*fresh), Told{kPowerOn});
  EXPECT_EQ(told(*fresh, kFive), Told{});
}

TEST_F(FirstUseTest, ALunMadeReadOnlyBeforeItsFirstUseReportsItAndRefusesWrites) {
  auto fresh = open_fresh("fresh");
  read_only = true;
  auto reader = open_fresh("reader");
  map({{0, unit, true}});
  EXPECT_EQ(told(*fresh), (Told{kPowerOn, kModeChanged}));
  EXPECT_FALSE(writes(*fresh));
  EXPECT_EQ(told(*reader), Told{kPowerOn}) << "nothing changed for a host that may only read";
  read_only = false;
  EXPECT_EQ(told(*open_fresh("late")), Told{kPowerOn});
}

TEST_F(FirstUseTest, ANamedAttentionBeyondTheLogsCapacityIsReportedToEveryNexus) {
  std::vector<Registration> whom(limits::kMaxNamedAttentions);
  for (size_t i = 0; i < whom.size(); ++i) whom[i].nexus.initiator_name = std::to_string(i);
  auto fresh = open_fresh("fresh");
  AttentionLog log;
  const AttentionLog::Moment before = AttentionLog::now();
  const UnitAttention released{0x2a, 0x04};
  for (int time = 0; time < 3; ++time) log.add(released, whom);
  EXPECT_EQ(log.size(), whom.size()) << "the same again takes no room";
  EXPECT_TRUE(log.raised_after(before, fresh->id()).empty());
  EXPECT_EQ(log.raised_after(before, whom[3].nexus), std::vector{released});
  whom[0].nexus = c->id();
  log.add(released, {whom[0]});
  EXPECT_EQ(log.size(), 1u);
  EXPECT_EQ(log.raised_after(before, fresh->id()), std::vector{released});
  EXPECT_EQ(log.raised_for_forwarded(AttentionLog::now(), now, fresh->id()), std::vector{released});
  EXPECT_TRUE(log.raised_after(AttentionLog::now(), fresh->id()).empty());
}

// Each is found, raised before the LUN's first use, after it or in the midst of it.
TEST_F(FirstUseTest, AnAttentionRaisedDuringTheFirstUseIsNotLost) {
  constexpr int kTimes = 2000;
  constexpr uint8_t kKinds = limits::kMaxUnitAttentions;
  std::barrier both(2);
  std::atomic<int> raised{0};
  std::thread other([&] {
    for (int i = 0; i < kTimes; ++i) {
      both.arrive_and_wait();
      for (uint8_t kind = 0; kind < kKinds; ++kind) {
        unit->attached().raise({0x2a, kind}, nullptr);
        raised = kind + 1;
        // gives another thread time to take the lock
        for (int breath = 0; breath < 50; ++breath) raised += 0;
      }
      both.arrive_and_wait();
    }
  });
  for (int i = 0; i < kTimes; ++i) {
    auto fresh = open_forwarded("fresh");
    raised = 0;
    both.arrive_and_wait();
    while (raised < i % kKinds) {
    }
    const Itl* itl = fresh->use(0);
    both.arrive_and_wait();
    EXPECT_EQ(itl->pending.size(), kKinds);
    fresh->close(false, [] {});
    reactors.run();
    nexuses.pop_back();
  }
  other.join();
}

class FirstUseInAClusterTest : public ClusterTest {};

TEST_F(FirstUseInAClusterTest, AChangedAccessStateIsReportedAtTheFirstUse) {
  serve_here(1);
  auto fresh = open_fresh("fresh");
  follow_to(2, 2);  // not yet: it has a backend
  const auto released = release_unit();
  reactors.run();
  ASSERT_EQ(*released, 1);
  follow_to(2, 2);
  EXPECT_EQ(start(*fresh, test_unit_ready()).sense(), 0x062900u);
  EXPECT_EQ(start(*fresh, test_unit_ready()).sense(), 0x062a06u);
}

TEST_F(FirstUseInAClusterTest, AResetOfAnUnusedLunIsForwardedToItsOwner) {
  follow_to(2, 1);
  auto fresh = open_fresh("fresh");
  bool done = false;
  fresh->target_reset([&](bool at_owner) { done = at_owner; });
  ASSERT_EQ(links.last().functions.size(), 1u);
  EXPECT_EQ(links.last().functions[0].function, LinkFunction::kLogicalUnitReset);
  reactors.run();
  EXPECT_FALSE(done);
  links.last().functions[0].done(true);
  reactors.run();
  EXPECT_TRUE(done);
}

// Its first command may already be in a socket that was not read yet (R4).
TEST_F(FirstUseInAClusterTest, AFenceAlsoDropsSessionsThatHaveNotUsedTheUnitYet) {
  serve_here(1);
  auto user = open("user");
  auto other = open_fresh("other");
  watch_drops(*user);
  watch_drops(*other);
  const auto fenced = fence_unit();
  reactors.run();
  EXPECT_EQ(*fenced, 1);
  EXPECT_EQ(drops, 2u);
  EXPECT_TRUE(other->itls().empty());
}

TEST_F(FirstUseInAClusterTest, AFenceSparesSessionsWhoseLunOfTheUnitWasRemoved) {
  serve_here(1);
  auto other = open_fresh("other");
  other->drop = [](const std::string&) { FAIL() << "it has nothing there"; };
  target->set_luns({}, reactors);
  reactors.run();
  const auto fenced = fence_unit();
  reactors.run();
  EXPECT_EQ(*fenced, 1);
}

}  // namespace
}  // namespace sluice::lun
