// What a command meets at a gateway that doesn't own the unit (DESIGN R1, R7, R11).
#include <gtest/gtest.h>

#include <array>

#include "base/limits.h"
#include "nexus/cluster_fixture.h"
#include "unit/statistics.h"

namespace sluice::lun {
namespace {

class StandingTest : public ClusterTest {};

TEST_F(StandingTest, InTransitionMediumCommandsWaitAndOtherCommandsAnswerImmediately) {
  auto nexus = open("a");
  Task& read = start(*nexus, read16(0, 8));
  EXPECT_EQ(start(*nexus, test_unit_ready()).sense(), kInTransition);
  EXPECT_EQ(start(*nexus, inquiry()).command.status, scsi::Status::kGood);
  EXPECT_EQ(start(*nexus, vpd(0xb0)).command.status, scsi::Status::kGood);
  EXPECT_EQ(start(*nexus, report_luns()).command.status, scsi::Status::kGood);
  EXPECT_EQ(start(*nexus, report_groups()).command.status, scsi::Status::kGood);
  const Bytes sense = start(*nexus, request_sense()).answer();
  EXPECT_EQ(sense[2], 0x02);
  EXPECT_EQ(sense[12], 0x04);
  EXPECT_EQ(sense[13], 0x0a);
  EXPECT_EQ(read.completions, 0);
  EXPECT_EQ(unit->statistics().snapshot().in_flight, 1u);
}

TEST_F(StandingTest, TheThinProvisioningThresholdIsReportedOncePerNexusByOwnerAndForwarders) {
  constexpr uint32_t kThresholdReached = 0x063807;
  auto here = open("a");
  auto there = open("b", 1);
  const auto tell_all = [&](const std::string& name) {
    tell_threshold_reached(*unit);
    tell_threshold_reached(*unit);  // one pending attention is enough
    auto late = open_fresh(name);
    for (Nexus* nexus : {here.get(), there.get()}) {
      EXPECT_EQ(start(*nexus, read16(0, 8)).sense(), kThresholdReached);
      EXPECT_EQ(start(*nexus, inquiry()).command.status, scsi::Status::kGood);
    }
    EXPECT_EQ(start(*late, read16(0, 8)).sense(), 0x062900u) << "29/00 says look at everything";
  };
  follow_to(2, 1);
  forget_attentions(*here);
  forget_attentions(*there);
  tell_all("c");
  Task& forwarded = start(*here, read16(0, 8));
  EXPECT_EQ(forwarded.completions, 0);
  ASSERT_EQ(links.last().started.size(), 1u);
  finish_forwarded(*links.last().started[0].first, scsi::Status::kGood, {}, {});
  serve_here(2);
  forget_attentions(*here);
  forget_attentions(*there);
  tell_all("d");
  EXPECT_EQ(start(*there, read16(0, 8)).command.status, scsi::Status::kGood);
  EXPECT_EQ(start(*here, read16(0, 8)).command.status, scsi::Status::kGood);
}

TEST_F(StandingTest, HeldCommandsRunInOrderOnceTheUnitIsServed) {
  auto nexus = open("a");
  Task& first = start(*nexus, write16(0, 8), Bytes(4096, 1));
  Task& second = start(*nexus, write16(0, 8), Bytes(4096, 2));
  Task& read = start(*nexus, read16(0, 8));
  EXPECT_EQ(first.completions + second.completions + read.completions, 0);
  serve_here(1);
  EXPECT_TRUE(first.done() && second.done() && read.done());
  ASSERT_EQ(backend->submitted.size(), 3u);
  EXPECT_EQ(read.answer(), Bytes(4096, 2));
}

TEST_F(StandingTest, ALaterCommandDoesNotOvertakeHeldCommands) {
  auto nexus = open("a");
  Task& held = start(*nexus, write16(0, 8), Bytes(4096, 1));
  serve(*unit, reactors, std::make_unique<OwnedBackend>(kBlocks * block, fate), nullptr, {}, 1,
        kSelf);
  // Before the posted task runs that releases the first.
  Task& later = start(*nexus, write16(0, 8), Bytes(4096, 2));
  EXPECT_EQ(later.completions, 0);
  reactors.run();
  EXPECT_TRUE(held.done() && later.done());
  EXPECT_EQ(start(*nexus, read16(0, 8)).answer(), Bytes(4096, 2));
}

TEST_F(StandingTest, HeldCommandsAreForwardedToANewOwnerWithTheirData) {
  auto nexus = open("a");
  start(*nexus, write16(0, 8), Bytes(4096, 1));
  follow_to(2, 7);
  ASSERT_EQ(links.links.size(), 1u);
  EXPECT_EQ(links.links[0].first, 2);
  ASSERT_EQ(links.last().started.size(), 1u);
  EXPECT_EQ(links.last().started[0].second, 7u);
  EXPECT_EQ(links.last().started[0].first->data_out_size, 4096u);
}

TEST_F(StandingTest, HeldCommandsReportATransitionAfterTheHoldTimeAndNotBefore) {
  auto nexus = open("a");
  Task& early = start(*nexus, read16(0, 8));
  now += limits::kHoldCommands / 2;
  Task& late = start(*nexus, read16(8, 8));
  now += limits::kHoldCommands / 2 - 1;
  nexus->tick();
  EXPECT_EQ(early.completions, 0);
  now += 1;
  nexus->tick();
  EXPECT_EQ(early.sense(), kInTransition);
  EXPECT_EQ(late.completions, 0);
  now += limits::kHoldCommands;
  nexus->tick();
  EXPECT_EQ(late.sense(), kInTransition);
}

TEST_F(StandingTest, CommandsBeyondTheHeldMaximumReturnBusy) {
  auto nexus = open("a");
  for (unsigned i = 0; i < limits::kMaxHeldPerUnit; ++i) {
    ASSERT_EQ(start(*nexus, read16(0, 1)).completions, 0);
  }
  EXPECT_EQ(start(*nexus, read16(0, 1)).command.status, scsi::Status::kBusy);
  nexus->abort(tasks.front()->command);
  EXPECT_TRUE(tasks.front()->done());
  EXPECT_EQ(start(*nexus, read16(0, 1)).completions, 0) << "there is room for one again";
}

TEST_F(StandingTest, AnAbortAResetOrTheEndOfTheNexusEndsHeldCommands) {
  auto nexus = open("a");
  auto other = open("b", 1);
  Task& aborted = start(*nexus, read16(0, 8));
  Task& closed = start(*nexus, read16(0, 8));
  Task& reset = start(*other, read16(0, 8));
  nexus->abort(aborted.command);
  EXPECT_TRUE(aborted.done() && aborted.command.aborted());
  bool done = false;
  EXPECT_TRUE(nexus->logical_unit_reset(0, [&](bool at_owner) { done = at_owner; }));
  reactors.run();
  EXPECT_TRUE(closed.done() && reset.done());
  EXPECT_FALSE(done) << "the unit has no owner that could have done it";
  EXPECT_EQ(reset.command.abort, Abort::kWithStatus);
  EXPECT_EQ(start(*other, read16(0, 8)).sense(), 0x062903u);
  Task& last = start(*other, read16(0, 8));
  other->close(true, [] {});
  EXPECT_TRUE(last.done());
  reactors.run();
  serve_here(1);
  EXPECT_TRUE(done);
  EXPECT_TRUE(backend->submitted.empty());
}

TEST_F(StandingTest, AHeldOrderedCommandRetainsItsOrder) {
  auto nexus = open("a");
  Task& ordered = make(write16(0, 8), Bytes(4096, 1));
  ordered.command.attribute = TaskAttribute::kOrdered;
  if (begin(*nexus, ordered)) send_data(*nexus, ordered);
  Task& simple = start(*nexus, read16(0, 8));
  fate = std::make_shared<Fate>();
  auto owned = std::make_unique<OwnedBackend>(kBlocks * block, fate);
  backend = owned.get();
  backend->holds = true;
  serve(*unit, reactors, std::move(owned), nullptr, {}, 1, kSelf);
  reactors.run();
  EXPECT_EQ(backend->submitted.size(), 1u);
  backend->release_one();
  backend->release_one();
  EXPECT_TRUE(ordered.done());
  EXPECT_EQ(simple.answer(), Bytes(4096, 1));
}

TEST_F(StandingTest, AnUnavailableUnitAnswersImmediatelyWithoutRequestingData) {
  for (const auto& [owner, standing] :
       {std::pair{uint16_t{0}, Standing::kUnavailable}, {uint16_t{2}, Standing::kCutOff}}) {
    follow_to(owner, 3, standing);
    auto nexus = open("a");
    forget_attentions(*nexus);
    Task& write = make(write16(0, 8), Bytes(4096, 1));
    EXPECT_FALSE(begin(*nexus, write));
    EXPECT_EQ(write.sense(), kNotAvailable);
    EXPECT_EQ(start(*nexus, read16(0, 8)).sense(), kNotAvailable);
    EXPECT_EQ(start(*nexus, test_unit_ready()).sense(), kNotAvailable);
    EXPECT_EQ(start(*nexus, inquiry()).command.status, scsi::Status::kGood);
  }
}

TEST_F(StandingTest, HeldCommandsOfAUnitThatBecomesUnavailableReportIt) {
  auto nexus = open("a");
  Task& read = start(*nexus, read16(0, 8));
  follow_to(0, 3, Standing::kUnavailable);
  EXPECT_EQ(read.sense(), kNotAvailable);
}

TEST_F(StandingTest, ARemovedLunAnswersItsHeldCommands) {
  auto nexus = open("a");
  Task& read = start(*nexus, read16(0, 8));
  target->set_luns({}, reactors);
  reactors.run();
  nexus->tick();
  EXPECT_EQ(read.sense(), 0x052500u);
}

TEST_F(StandingTest, AChangeOfOwnerOrStandingIsReportedToEveryNexusButTheFirstRoleIsNot) {
  const std::array both = {open("a"), open("b", 1)};
  const auto expect_on_each = [&](uint32_t sense) {
    for (const auto& nexus : both) EXPECT_EQ(start(*nexus, test_unit_ready()).sense(), sense);
  };
  serve_here(1);
  expect_on_each(0);
  release_unit();
  reactors.run();
  follow_to(2, 2);
  expect_on_each(0x062a06);
  follow_to(2, 2);
  for (const auto& nexus : both) {
    EXPECT_EQ(start(*nexus, read16(0, 8)).completions, 0) << "forwarded: no change to report";
  }
  follow_to(3, 3);
  expect_on_each(0x062a06);
  serve_here(4);
  expect_on_each(0x062a06);
  expect_on_each(0);
}

TEST_F(StandingTest, ReservationsApplyBeforeTheFirstCommandAndReserve6DoesNotSurvive) {
  auto holder = open("a");
  auto other = open("b");
  serve_here(1);
  EXPECT_EQ(start(*holder, {0x16, 0, 0, 0, 0, 0}).command.status, scsi::Status::kGood);
  EXPECT_EQ(start(*other, read16(0, 8)).command.status, scsi::Status::kReservationConflict);
  release_unit();
  reactors.run();
  Task& held = start(*other, write16(0, 8), Bytes(4096, 1));
  EXPECT_EQ(held.completions, 0);
  ReservationState state;
  state.type = ReservationType::kWriteExclusive;
  state.holder = holder->id();
  state.registrations = {{holder->id(), 1, false, {}}};
  serve_here(2, state);
  EXPECT_EQ(held.command.status, scsi::Status::kReservationConflict);
  forget_attentions(*other);
  EXPECT_EQ(start(*other, read16(0, 8)).command.status, scsi::Status::kGood);
}

TEST_F(StandingTest, AGrownCapacityIsReportedByReshapeAndByServe) {
  serve_here(1);
  release_unit();
  reactors.run();
  auto nexus = open("a");
  reshape(*unit, {2 * kBlocks * block, false});
  EXPECT_EQ(unit->blocks(), 2 * kBlocks);
  EXPECT_EQ(start(*nexus, read16(0, 8)).sense(), 0x062a09u);
  reshape(*unit, {kBlocks * block, false});
  EXPECT_EQ(unit->blocks(), 2 * kBlocks) << "never shrinks";
  serve_here(2, {}, 3 * kBlocks);
  EXPECT_EQ(start(*nexus, test_unit_ready()).sense(), 0x062a09u);
  EXPECT_EQ(start(*nexus, test_unit_ready()).sense(), 0x062a06u) << "it has an owner again";
  EXPECT_EQ(start(*nexus, read16(3 * kBlocks - 8, 8)).command.status, scsi::Status::kGood);
}

TEST_F(StandingTest, AUnitWithoutABackendToleratesHealthPollsResizesAndModeResets) {
  unit->poll_health();
  EXPECT_EQ(unit->gate() & Unit::kNotReady, 0u);
  EXPECT_TRUE(unit->check_medium().ok());
  EXPECT_FALSE(unit->write_cache());
  EXPECT_FALSE(unit->resize(1 << 20).ok());
  unit->reset_state({0x29, 0x03}, now);
  EXPECT_EQ(unit->blocks(), kBlocks);
}

// DESIGN R11: same epoch, same answer, through every gateway.
TEST_F(StandingTest, PortGroupsFollowTheRole) {
  target->set_ports({{2, 5, 12}, {1, 4, 11}, {2, 6, 13}});
  auto nexus = open("a");
  const auto states = [&] {
    forget_attentions(*nexus);
    const Bytes all = start(*nexus, report_groups()).answer();
    EXPECT_EQ(all.size(), 4u + 8 + 4 + 8 + 8);
    EXPECT_EQ(all[7], 1);    // group
    EXPECT_EQ(all[15], 11);  // its port
    EXPECT_EQ(all[19], 2);
    EXPECT_EQ(all[27], 12);
    EXPECT_EQ(all[31], 13);
    return std::pair<int, int>(all[4], all[16]);
  };
  EXPECT_EQ(states(), std::pair(0x0f, 0x0f));
  serve_here(1);
  EXPECT_EQ(states(), std::pair(0x80, 0x01)) << "PREF on the optimized one only";
  release_unit();
  EXPECT_EQ(states(), std::pair(0x0f, 0x0f));
  reactors.run();
  follow_to(2, 2);
  EXPECT_EQ(states(), std::pair(0x01, 0x80));
  follow_to(0, 2, Standing::kUnavailable);
  EXPECT_EQ(states(), std::pair(0x03, 0x03));
  follow_to(2, 2, Standing::kCutOff);
  EXPECT_EQ(states(), std::pair(0x03, 0x80)) << "the own group only";
}

TEST_F(StandingTest, VitalProductDataIsTheSameBeforeAndAfterATakeover) {
  auto nexus = open("a");
  const auto pages = [&] {
    std::vector<Bytes> all;
    for (const uint8_t page : {0x00, 0x80, 0x83, 0x86}) {
      all.push_back(start(*nexus, vpd(page)).answer());
    }
    all.push_back(start(*nexus, inquiry()).answer());
    return all;
  };
  const auto unopened = pages();
  serve_here(1);
  const auto owned = pages();
  const Bytes limits = start(*nexus, vpd(0xb0)).answer();
  const Bytes provisioning = start(*nexus, vpd(0xb2)).answer();
  EXPECT_EQ(unopened, owned);
  release_unit();
  reactors.run();
  EXPECT_EQ(pages(), owned);
  EXPECT_EQ(start(*nexus, vpd(0xb0)).answer(), limits) << "without an owner, as last known";
  EXPECT_EQ(start(*nexus, vpd(0xb2)).answer(), provisioning);
  follow_to(2, 2);
  EXPECT_EQ(pages(), owned);
}

}  // namespace
}  // namespace sluice::lun
