// The consequences of an unknown outcome of a reservation change (DESIGN R3).
#include <gtest/gtest.h>

#include "commands/reservations/reservation_commands_fixture.h"

namespace sluice::lun {
namespace {

using scsi::PrOutAction;
using scsi::Status;

class DoubtTest : public ReservationCommandsTest {
 protected:
  // `nexus` sends a change of which the store can't tell what became.
  Task& doubtful_out(Nexus& nexus, PrOutAction action, const Out& what) {
    store->outcome = CommitOutcome::kUnknown;
    Task& task = begin_out(nexus, action, what);
    reactors.run();
    store->outcome = CommitOutcome::kCommitted;
    return task;
  }
  Bytes keys(Nexus& nexus) {
    const Bytes all = in(nexus, 0).answer();
    return all.empty() ? all : Bytes(all.begin() + 8, all.end());
  }
};

TEST_F(DoubtTest, AnUnknownOutcomeDropsTheNexusInsteadOfAnAnswer) {
  enlist(*a, 0xa);
  Task& task = doubtful_out(*a, PrOutAction::kReserve, {.key = 0xa, .type = kWe});
  EXPECT_TRUE(task.done());
  EXPECT_EQ(task.command.outcome, Outcome::kUnknown);
  EXPECT_EQ(task.command.sense_size, 0);
  EXPECT_NE(start(*a, read16(0, 1)).command.outcome, Outcome::kUnknown);
}

TEST_F(DoubtTest, AKnownOutcomeDoesNotDropTheNexus) {
  EXPECT_NE(run(begin_out(*a, PrOutAction::kRegister, {.service_action_key = 1})).command.outcome,
            Outcome::kUnknown);
  store->outcome = CommitOutcome::kNotCommitted;
  Task& busy = run(begin_out(*a, PrOutAction::kRegister, {.key = 1}));
  EXPECT_EQ(busy.command.status, Status::kBusy);
  EXPECT_NE(busy.command.outcome, Outcome::kUnknown);
  EXPECT_EQ(store->reads, 0u);
}

TEST_F(DoubtTest, AnUncertainChangeThatWasCommittedHasAllItsEffects) {
  enlist(*a, 0xa);
  enlist(*b, 0xb);
  reserve(*a, 0xa, kEaro);
  store->holds_reads = true;
  doubtful_out(*b, PrOutAction::kPreempt, {.key = 0xb, .service_action_key = 0xa, .type = kEaro});
  EXPECT_TRUE(state().holds(a->id())) << "until the store was asked";
  store->kept = store->states.back();
  store->answer_read();
  reactors.run();
  EXPECT_TRUE(state().holds(b->id()));
  EXPECT_EQ(attention(*a), 0x062a05u);
  EXPECT_FALSE(writes(*a));
  EXPECT_TRUE(writes(*b));
}

TEST_F(DoubtTest, AnUncertainChangeThatWasNotCommittedHasNoEffect) {
  enlist(*a, 0xa);
  reserve(*a, 0xa, kWe);
  store->kept = state();
  const ReservationState before = state();
  doubtful_out(*a, PrOutAction::kClear, {.key = 0xa});
  EXPECT_EQ(store->reads, 1u);
  EXPECT_EQ(state(), before);
  EXPECT_EQ(attention(*b), 0u);
  EXPECT_FALSE(writes(*b));
}

TEST_F(DoubtTest, AStateThatNoLocalCommandMadeIsReportedToTheAffectedNexuses) {
  enlist(*a, 0xa);
  enlist(*b, 0xb);
  reserve(*a, 0xa, kWero);
  ReservationState other = state();
  other.registrations.erase(other.registrations.begin());
  other.holder = b->id();
  store->kept = other;
  doubtful_out(*a, PrOutAction::kClear, {.key = 0xa});
  EXPECT_EQ(state(), other);
  EXPECT_EQ(attention(*a), 0x062a05u);
  EXPECT_EQ(attention(*b), 0x062a03u);
  EXPECT_FALSE(writes(*a));
}

TEST_F(DoubtTest, EveryReservationCommandWaitsUntilTheStoreIsRead) {
  enlist(*a, 0xa);
  store->holds_reads = true;
  doubtful_out(*a, PrOutAction::kReserve, {.key = 0xa, .type = kEaro});
  Task& out_task = begin_out(*b, PrOutAction::kRegister, {.service_action_key = 0xb});
  Task& in_task = start(*b, Bytes{0x5e, 1, 0, 0, 0, 0, 0, 0, 255, 0});
  Task& reserve6_task = start(*c, Bytes{0x16, 0, 0, 0, 0, 0});
  Task& release6_task = start(*c, Bytes{0x17, 0, 0, 0, 0, 0});
  reactors.run();
  for (const Task* task : {&out_task, &in_task, &reserve6_task, &release6_task}) {
    EXPECT_FALSE(task->done());
  }
  EXPECT_TRUE(writes(*b)) << "I/O goes on under the old state";
  store->kept = store->states.back();
  store->answer_read();
  reactors.run();
  EXPECT_EQ(out_task.command.status, Status::kGood);
  EXPECT_EQ(in_task.answer().size(), 24u) << "a reservation is shown";
  EXPECT_EQ(run(reserve6_task).command.status, Status::kReservationConflict);
  EXPECT_EQ(run(release6_task).command.status, Status::kReservationConflict);
  EXPECT_FALSE(writes(*c));
}

TEST_F(DoubtTest, EachReservationCommandReadsAnUnreadableStoreAgainAndReturnsBusy) {
  enlist(*a, 0xa);
  const ReservationState before = state();
  store->kept = Error{"out of reach"};
  doubtful_out(*a, PrOutAction::kReserve, {.key = 0xa, .type = kWe});
  const size_t commits = store->states.size();
  EXPECT_EQ(out(*b, PrOutAction::kRegister, {.service_action_key = 0xb}), Status::kBusy);
  EXPECT_EQ(in(*b, 0).command.status, Status::kBusy);
  EXPECT_EQ(reserve6(*c), Status::kBusy);
  EXPECT_EQ(store->reads, 4u);
  EXPECT_EQ(store->states.size(), commits) << "nothing was tried";
  store->kept = before;
  EXPECT_EQ(out(*b, PrOutAction::kRegister, {.service_action_key = 0xb}), Status::kGood);
  EXPECT_EQ(store->reads, 5u);
  EXPECT_EQ(keys(*b).size(), 16u);
  EXPECT_EQ(store->reads, 5u) << "certain again";
}

TEST_F(DoubtTest, AnUncertainPreemptAndAbortIsShownOnlyAfterTheVictimsCommandsEnd) {
  enlist(*a, 0xa);
  enlist(*b, 0xb);
  reserve(*a, 0xa, kWero);
  backend->holds = true;
  Task& write = start(*a, write16(7, 1), Bytes(block, 0xaa));
  store->holds_reads = true;
  doubtful_out(*b, PrOutAction::kPreemptAndAbort,
               {.key = 0xb, .service_action_key = 0xa, .type = kWero});
  Task& victims_change = begin_out(*a, PrOutAction::kClear, {.key = 0xa});
  Task& look = start(*c, Bytes{0x5e, 0, 0, 0, 0, 0, 0, 0, 255, 0});
  store->kept = store->states.back();
  store->answer_read();
  reactors.run();
  EXPECT_TRUE(victims_change.done()) << "nothing was submitted for it";
  EXPECT_EQ(victims_change.command.status, Status::kTaskAborted);
  EXPECT_FALSE(look.done());
  backend->holds = false;
  backend->release_all();
  EXPECT_EQ(write.command.status, Status::kTaskAborted);
  EXPECT_EQ(run(look).answer().size(), 16u) << "one key is left";
}

TEST_F(DoubtTest, ACommandAbortedWhileItWaitsForTheStoreEndsAndTheNextContinues) {
  enlist(*a, 0xa);
  store->holds_reads = true;
  doubtful_out(*a, PrOutAction::kReserve, {.key = 0xa, .type = kWe});
  Task& first = begin_out(*b, PrOutAction::kRegister, {.service_action_key = 0xb});
  Task& second = begin_out(*c, PrOutAction::kRegister, {.service_action_key = 0xc});
  b->abort(first.command);
  EXPECT_TRUE(first.done());
  store->kept = state();
  store->answer_read();
  EXPECT_EQ(run(second).command.status, Status::kGood);
  EXPECT_EQ(state().registrations.size(), 2u);
}

}  // namespace
}  // namespace sluice::lun
