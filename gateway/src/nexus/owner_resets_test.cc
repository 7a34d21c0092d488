// Resets of units that this gateway doesn't own, or owns no more, or not yet (DESIGN R9).
#include "nexus/owner_resets.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "nexus/cluster_fixture.h"

namespace sluice::lun {
namespace {

constexpr uint32_t kReset = 0x062903;  // BUS DEVICE RESET FUNCTION OCCURRED

class OwnerResetsTest : public ClusterTest {
 protected:
  enum class Answer : uint8_t { kNone, kDone, kRefused };

  // What a reset by `nexus` was answered so far.
  std::shared_ptr<Answer> reset(Nexus& nexus) {
    auto result = std::make_shared<Answer>(Answer::kNone);
    EXPECT_TRUE(nexus.logical_unit_reset(0, [result](bool at_owner) {
      EXPECT_EQ(*result, Answer::kNone);
      *result = at_owner ? Answer::kDone : Answer::kRefused;
    }));
    reactors.run();
    return result;
  }
  std::vector<FakeLink::Function>& asked(size_t link) {
    return links.links.at(link).second->functions;
  }
  void answer(size_t link, bool carried_out) {
    asked(link).back().done(carried_out);
    reactors.run();
  }
  void tick(Nexus& nexus, Nanos later = limits::kTick) {
    now += later;
    nexus.tick();
    reactors.run();
  }
  std::shared_ptr<Nexus> open_forwarded(const std::string& name) {
    NexusId id;
    id.initiator_name = "iqn.2026-11.test:" + name;
    id.relative_target_port = 77;
    auto nexus = Nexus::open(target, id, {&aio, &pool, &reactors, 0, &now, &latencies, forwarding},
                             false, Nanos{0});
    nexuses.push_back(nexus);
    return nexus;
  }
};

TEST_F(OwnerResetsTest, AResetThatTheOwnerRefusedIsSentToTheNextOwner) {
  follow_to(2, 7);
  auto nexus = open("a");
  const auto result = reset(*nexus);
  ASSERT_EQ(asked(0).size(), 1u);
  answer(0, false);
  EXPECT_EQ(*result, Answer::kNone) << "no owner has done it";
  follow_to(3, 8);
  ASSERT_EQ(links.links.size(), 2u);
  EXPECT_EQ(links.links[1].first, 3);
  ASSERT_EQ(asked(1).size(), 1u);
  EXPECT_EQ(asked(1)[0].function, LinkFunction::kLogicalUnitReset);
  EXPECT_EQ(*result, Answer::kNone);
  answer(1, true);
  EXPECT_EQ(*result, Answer::kDone);
}

TEST_F(OwnerResetsTest, ARefusedResetIsSentToTheSameOwnerAgainAtTheNextTickAndNoSooner) {
  follow_to(2, 7);
  auto nexus = open("a");
  const auto result = reset(*nexus);
  answer(0, false);
  EXPECT_EQ(asked(0).size(), 1u);
  tick(*nexus);
  ASSERT_EQ(asked(0).size(), 2u);
  tick(*nexus);
  EXPECT_EQ(asked(0).size(), 2u) << "it has not answered";
  answer(0, true);
  EXPECT_EQ(*result, Answer::kDone);
  tick(*nexus);
  EXPECT_EQ(asked(0).size(), 2u);
}

TEST_F(OwnerResetsTest, AResetIsSentToANewOwnerOnlyAfterThePreviousOwnerRefusedIt) {
  follow_to(2, 7);
  auto nexus = open("a");
  const auto result = reset(*nexus);
  follow_to(3, 8);
  EXPECT_EQ(links.links.size(), 1u) << "it may have been done where it is";
  answer(0, false);
  ASSERT_EQ(links.links.size(), 2u);
  answer(1, true);
  EXPECT_EQ(*result, Answer::kDone);
}

TEST_F(OwnerResetsTest, AResetThatThePreviousOwnerPerformedIsNotRepeated) {
  follow_to(2, 7);
  auto nexus = open("a");
  const auto result = reset(*nexus);
  follow_to(3, 8);
  answer(0, true);
  EXPECT_EQ(*result, Answer::kDone);
  EXPECT_EQ(links.links.size(), 1u);
}

TEST_F(OwnerResetsTest, AGatewayThatBecomesTheOwnerPerformsTheReset) {
  follow_to(2, 7);
  auto nexus = open("a");
  auto other = open("b", 1);
  const auto result = reset(*nexus);
  answer(0, false);
  serve_here(8);
  EXPECT_EQ(*result, Answer::kDone);
  EXPECT_EQ(asked(0).size(), 1u);
  forget_attentions(*nexus);
  EXPECT_EQ(start(*other, test_unit_ready()).sense(), 0x062a06u);
  EXPECT_EQ(start(*other, test_unit_ready()).sense(), kReset);
  EXPECT_EQ(start(*other, test_unit_ready()).command.status, scsi::Status::kGood);
}

TEST_F(OwnerResetsTest, AResetAtANewOwnerAbortsOtherNexusesCommandsAndWaitsForThem) {
  auto nexus = open("a");
  auto other = open("b", 1);
  const auto result = reset(*nexus);
  forget_attentions(*other);
  Task& theirs = start(*other, read16(0, 8));
  fate = std::make_shared<Fate>();
  auto owned = std::make_unique<OwnedBackend>(kBlocks * block, fate);
  backend = owned.get();
  backend->holds = true;
  serve(*unit, reactors, std::move(owned), nullptr, {}, 1, kSelf);
  reactors.run();
  EXPECT_EQ(*result, Answer::kNone) << "R5: the backend has not completed it";
  backend->release_all();
  reactors.run();
  EXPECT_EQ(*result, Answer::kDone);
  EXPECT_TRUE(theirs.done());
  EXPECT_EQ(theirs.command.abort, Abort::kWithStatus);
}

TEST_F(OwnerResetsTest, AResetDuringTheReleaseOfTheVolumeIsPerformedByTheNextOwner) {
  serve_here(6);
  auto nexus = open("a");
  release_unit();
  const auto result = reset(*nexus);
  EXPECT_EQ(*result, Answer::kNone);
  follow_to(2, 7);
  ASSERT_EQ(links.links.size(), 1u);
  answer(0, true);
  EXPECT_EQ(*result, Answer::kDone);
}

TEST_F(OwnerResetsTest, CommandsAfterAResetAreHeldUntilTheResetIsDone) {
  follow_to(2, 7);
  auto nexus = open("a");
  Task& before = start(*nexus, read16(0, 8));
  const auto result = reset(*nexus);
  EXPECT_EQ(links.last().aborted.size(), 1u);
  finish_good(*std::exchange(links.last().aborted, {}).at(0));
  EXPECT_TRUE(before.done());
  Task& write = start(*nexus, write16(0, 8), Bytes(4096, 1));
  Task& read = start(*nexus, read16(0, 8));
  EXPECT_EQ(start(*nexus, inquiry()).command.status, scsi::Status::kGood);
  answer(0, false);
  tick(*nexus);
  EXPECT_EQ(links.last().started.size(), 1u) << "only what came before";
  follow_to(3, 8);
  answer(0, false);
  EXPECT_TRUE(links.last().started.empty());
  EXPECT_EQ(*result, Answer::kNone);
  answer(1, true);
  EXPECT_EQ(*result, Answer::kDone);
  ASSERT_EQ(links.last().started.size(), 2u);
  EXPECT_EQ(links.last().started[0].first, &write.command);
  EXPECT_EQ(links.last().started[1].first, &read.command);
}

TEST_F(OwnerResetsTest, NoCommandOvertakesAResetAtAGatewayThatBecomesTheOwner) {
  auto nexus = open("a");
  const auto result = reset(*nexus);
  Task& held = start(*nexus, write16(0, 8), Bytes(4096, 1));
  serve(*unit, reactors, std::make_unique<OwnedBackend>(kBlocks * block, fate), nullptr, {}, 1,
        kSelf);
  // The gate is open, and the posted task that does the reset has not run.
  forget_attentions(*nexus);
  Task& reserve = start(*nexus, {0x16, 0, 0, 0, 0, 0});
  EXPECT_EQ(reserve.completions, 0);
  reactors.run();
  EXPECT_EQ(*result, Answer::kDone);
  EXPECT_TRUE(held.done() && !held.command.aborted());
  EXPECT_TRUE(reserve.done());
  EXPECT_NE(unit->gate() & Unit::kReserved, 0u) << "it came after the reset";
}

TEST_F(OwnerResetsTest, ASecondResetAbortsCommandsReceivedAfterTheFirst) {
  follow_to(2, 7);
  auto nexus = open("a");
  const auto first = reset(*nexus);
  Task& between = start(*nexus, read16(0, 8));
  const auto second = reset(*nexus);
  EXPECT_TRUE(between.done() && between.command.aborted());
  Task& after = start(*nexus, read16(0, 8));
  ASSERT_EQ(asked(0).size(), 2u);
  asked(0)[0].done(true);
  reactors.run();
  EXPECT_EQ(*first, Answer::kDone);
  EXPECT_EQ(*second, Answer::kNone);
  EXPECT_TRUE(links.last().started.empty());
  answer(0, true);
  EXPECT_EQ(*second, Answer::kDone);
  ASSERT_EQ(links.last().started.size(), 1u);
  EXPECT_EQ(links.last().started[0].first, &after.command);
}

TEST_F(OwnerResetsTest, AResetWithoutAnOwnerIsRefusedAfterItsTimeLimit) {
  auto nexus = open("a");
  const auto result = reset(*nexus);
  Task& behind = start(*nexus, report_groups());
  EXPECT_TRUE(behind.done());
  forget_attentions(*nexus);
  Task& read = start(*nexus, read16(0, 8));
  tick(*nexus, limits::kHoldCommands);
  EXPECT_EQ(read.sense(), kInTransition) << "as without a reset";
  tick(*nexus, limits::kResetFollows - limits::kHoldCommands - 1);
  EXPECT_EQ(*result, Answer::kNone);
  tick(*nexus, 1);
  EXPECT_EQ(*result, Answer::kRefused);
  serve_here(1);
  forget_attentions(*nexus);
  EXPECT_EQ(start(*nexus, read16(0, 8)).command.status, scsi::Status::kGood);
}

TEST_F(OwnerResetsTest, AResetIsRefusedIfItsOwnerRefusesPastTheTimeLimitOrIsUnknown) {
  follow_to(2, 7);
  auto nexus = open("a");
  const auto result = reset(*nexus);
  now += limits::kResetFollows;
  answer(0, false);
  tick(*nexus, 0);
  EXPECT_EQ(*result, Answer::kRefused);
  EXPECT_EQ(asked(0).size(), 1u);
  links.known = false;
  follow_to(3, 8);
  const auto unknown = reset(*nexus);
  EXPECT_EQ(*unknown, Answer::kNone);
  tick(*nexus, limits::kResetFollows);
  EXPECT_EQ(*unknown, Answer::kRefused);
}

TEST_F(OwnerResetsTest, AnUnavailableUnitRefusesNewAndPendingResetsImmediately) {
  auto nexus = open("a");
  const auto waits = reset(*nexus);
  EXPECT_EQ(*waits, Answer::kNone);
  follow_to(0, 3, Standing::kUnavailable);
  EXPECT_EQ(*waits, Answer::kRefused);
  EXPECT_EQ(*reset(*nexus), Answer::kRefused);
}

TEST_F(OwnerResetsTest, AForwardedResetIsNotForwardedAgainAndIsRefusedByANonOwner) {
  auto nexus = open_forwarded("a");
  for (const Standing standing :
       {Standing::kForwarder, Standing::kTransitioning, Standing::kUnavailable}) {
    follow_to(3, 7, standing);
    EXPECT_EQ(*reset(*nexus), Answer::kRefused);
    tick(*nexus, limits::kResetFollows);
  }
  EXPECT_TRUE(links.links.empty());
  follow_to(0, 7, Standing::kTransitioning);
  auto other = open("b", 1);
  Task& held = start(*other, read16(0, 8));
  EXPECT_EQ(*reset(*nexus), Answer::kRefused);
  EXPECT_EQ(held.completions, 0) << "it waits for the owner, as the reset does";
  serve_here(8);
  EXPECT_TRUE(held.done());
  EXPECT_EQ(*reset(*nexus), Answer::kDone);
}

TEST_F(OwnerResetsTest, AForwardedResetIsRefusedOnlyAfterTheBackendCompletedAbortedCommands) {
  serve_here(7);
  auto nexus = open_forwarded("a");
  backend->holds = true;
  Task& read = make(read16(0, 8));
  read.command.epoch = 7;
  begin(*nexus, read);
  release_unit();
  const auto result = reset(*nexus);
  EXPECT_EQ(*result, Answer::kNone) << "R5";
  backend->release_all();
  reactors.run();
  EXPECT_TRUE(read.done() && read.command.aborted());
  EXPECT_EQ(*result, Answer::kRefused);
}

TEST_F(OwnerResetsTest, ATargetResetIsDoneWhenTheOwnerOfEveryUnitHasDoneIt) {
  UnitIdentity identity;
  identity.uuid = {2};
  auto second = open_unopened(identity, {kBlocks * block, false}, reactors.count());
  target->set_luns({{0, unit}, {1, second}}, reactors);
  auto nexus = open("a");
  serve_here(7);
  follow(*second, reactors, {Standing::kForwarder, 4, 2});
  reactors.run();
  for (const bool carried_out : {true, false}) {
    auto result = std::make_shared<Answer>(Answer::kNone);
    nexus->target_reset([result](bool all) { *result = all ? Answer::kDone : Answer::kRefused; });
    reactors.run();
    ASSERT_EQ(links.links.size(), 1u);
    EXPECT_EQ(asked(0).back().lun_field, uint64_t{1} << 48);
    EXPECT_EQ(*result, Answer::kNone);
    if (carried_out) {
      answer(0, true);
    } else {
      now += limits::kResetFollows;
      answer(0, false);
      tick(*nexus, 0);
    }
    EXPECT_EQ(*result, carried_out ? Answer::kDone : Answer::kRefused) << "one is not all";
  }
}

TEST_F(OwnerResetsTest, AClosingNexusDropsItsPendingResetsWithoutWaitingForAnOwner) {
  follow_to(2, 7);
  auto nexus = open("a");
  const auto asking = reset(*nexus);
  const auto done = asked(0)[0].done;
  auto waiting = open("b");
  const auto waits = reset(*waiting);
  answer(1, false);
  start(*waiting, read16(0, 8));
  unsigned closed = 0;
  for (Nexus* n : {nexus.get(), waiting.get()}) n->close(true, [&] { ++closed; });
  for (auto& [owner, link] : links.links) {
    for (auto& on_closed : std::exchange(link->closed, {})) reactors.post(0, std::move(on_closed));
    link->functions.clear();
  }
  reactors.run();
  EXPECT_EQ(closed, 2u);
  done(true);
  follow_to(3, 8);
  tick(*waiting);
  EXPECT_EQ(*asking, Answer::kNone);
  EXPECT_EQ(*waits, Answer::kNone);
  EXPECT_EQ(links.links.size(), 2u);
  const std::weak_ptr<Nexus> gone = waiting;
  nexuses.clear();
  tasks.clear();
  links.links.clear();
  waiting.reset();
  EXPECT_TRUE(gone.expired());
}

TEST_F(OwnerResetsTest, AResetOfARemovedLunIsRefusedAfterItsTimeLimit) {
  auto nexus = open("a");
  const auto result = reset(*nexus);
  target->set_luns({}, reactors);
  reactors.run();
  tick(*nexus, limits::kResetFollows);
  EXPECT_EQ(*result, Answer::kRefused);
}

TEST_F(OwnerResetsTest, ResetsBeyondTheMaximumPendingNumberAreRefused) {
  auto nexus = open("a");
  std::vector<std::shared_ptr<Answer>> all;
  for (unsigned i = 0; i < limits::kMaxFollowingResets; ++i) all.push_back(reset(*nexus));
  EXPECT_EQ(*reset(*nexus), Answer::kRefused);
  serve_here(1);
  for (const auto& result : all) ASSERT_EQ(*result, Answer::kDone);
  EXPECT_EQ(*reset(*nexus), Answer::kDone);
}

}  // namespace
}  // namespace sluice::lun
