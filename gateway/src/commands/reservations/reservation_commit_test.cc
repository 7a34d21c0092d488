// When changes of reservations are answered: after the disk, and after those they abort.
#include <gtest/gtest.h>

#include "commands/reservations/reservation_commands_fixture.h"

namespace sluice::lun {
namespace {

using scsi::PrOutAction;
using scsi::Status;

// --- durable before GOOD

TEST_F(ReservationCommandsTest, GoodIsReturnedAfterTheCommitWhileOtherIoContinues) {
  store->holds = true;
  Task& change = begin_out(*a, PrOutAction::kRegister, {.service_action_key = 0xa});
  reactors.run();
  EXPECT_FALSE(change.done());
  EXPECT_TRUE(state().registrations.empty());
  EXPECT_TRUE(writes(*a));
  EXPECT_TRUE(reads(*b));
  store->answer(CommitOutcome::kCommitted);
  EXPECT_FALSE(change.done()) << "goes on on its own reactor";
  EXPECT_EQ(run(change).command.status, Status::kGood);
  EXPECT_EQ(state().registrations.size(), 1u);
}

TEST_F(ReservationCommandsTest, LaterChangesWaitAndAreDecidedOnTheCommittedState) {
  store->holds = true;
  Task& first = begin_out(*a, PrOutAction::kRegister, {.service_action_key = 0xa});
  Task& second = begin_out(*a, PrOutAction::kReserve, {.key = 0xa, .type = kWe});
  Task& other = begin_out(*b, PrOutAction::kReserve, {.key = 0xb, .type = kWe});
  reactors.run();
  EXPECT_EQ(store->waiting.size(), 1u);
  store->answer(CommitOutcome::kCommitted);
  EXPECT_EQ(run(first).command.status, Status::kGood);
  EXPECT_FALSE(second.done());
  ASSERT_EQ(store->waiting.size(), 1u);
  store->answer(CommitOutcome::kCommitted);
  EXPECT_EQ(run(second).command.status, Status::kGood);
  EXPECT_EQ(run(other).command.status, Status::kReservationConflict);
  EXPECT_EQ(store->states.size(), 2u);
}

TEST_F(ReservationCommandsTest, TooManyWaitingChangesReturnBusy) {
  store->holds = true;
  begin_out(*a, PrOutAction::kRegister, {.service_action_key = 0xa});
  for (unsigned i = 0; i < limits::kMaxReservationChanges; ++i) {
    EXPECT_FALSE(begin_out(*a, PrOutAction::kRegister, {.key = 1}).done());
  }
  EXPECT_EQ(run(begin_out(*a, PrOutAction::kRegister)).command.status, Status::kBusy);
  store->answer(CommitOutcome::kCommitted);
  reactors.run();
  for (const auto& task : tasks) EXPECT_TRUE(task->done());
}

TEST_F(ReservationCommandsTest, AProvablyFailedCommitReturnsBusyAndChangesNothing) {
  store->outcome = CommitOutcome::kNotCommitted;
  EXPECT_EQ(out(*a, PrOutAction::kRegister, {.service_action_key = 0xa}), Status::kBusy);
  EXPECT_TRUE(state().registrations.empty());
  store->outcome = CommitOutcome::kCommitted;
  EXPECT_EQ(out(*a, PrOutAction::kRegister, {.service_action_key = 0xa}), Status::kGood);
}

// SPC-5 §5.14.7. BUSY would make a host repeat the command until there is space.
TEST_F(ReservationCommandsTest, AChangeWithoutRoomReturnsInsufficientResourcesAndChangesNothing) {
  EXPECT_EQ(out(*a, PrOutAction::kRegister, {.service_action_key = 0xa}), Status::kGood);
  store->outcome = CommitOutcome::kNoRoom;
  const Out reserve{.key = 0xa, .type = scsi::PrType::kWriteExclusive};
  EXPECT_EQ(
      run(begin_out(*a, PrOutAction::kRegister, {.key = 0xa, .service_action_key = 0xb})).sense(),
      0x055504u);
  EXPECT_EQ(
      run(begin_out(*a, PrOutAction::kRegisterAndIgnoreExistingKey, {.service_action_key = 0xb}))
          .sense(),
      0x055504u);
  EXPECT_EQ(run(begin_out(*a, PrOutAction::kReserve, reserve)).sense(), 0x055502u);
  ASSERT_EQ(state().registrations.size(), 1u);
  EXPECT_EQ(state().registrations[0].key, 0xau);
  store->outcome = CommitOutcome::kCommitted;
  EXPECT_EQ(out(*a, PrOutAction::kReserve, reserve), Status::kGood) << "the next change";
}

TEST_F(ReservationCommandsTest, AChangeAbortedWhileItWaitsDoesNothing) {
  store->holds = true;
  Task& first = begin_out(*a, PrOutAction::kRegister, {.service_action_key = 0xa});
  Task& second = begin_out(*b, PrOutAction::kRegister, {.service_action_key = 0xb});
  b->abort(second.command);
  store->answer(CommitOutcome::kCommitted);
  run(first);
  run(second);
  EXPECT_TRUE(second.command.aborted());
  EXPECT_EQ(state().registrations.size(), 1u);
  EXPECT_TRUE(store->waiting.empty());
}

TEST_F(ReservationCommandsTest, AStoredReservationAppliesFromTheStart) {
  ReservationState kept;
  kept.aptpl = true;
  kept.type = kEa;
  kept.holder = a->id();
  kept.registrations = {{a->id(), 0xa, false, {}}};
  store->kept = kept;
  ASSERT_TRUE(unit->restore_reservations());
  EXPECT_TRUE(reads(*a));
  EXPECT_FALSE(reads(*b));
  store->kept = Error{"corrupt"};
  EXPECT_FALSE(unit->restore_reservations());
}

TEST_F(ReservationCommandsTest, WithoutAStoreAptplIsRefusedAndOtherRegistrationsSucceed) {
  for (auto& nexus : nexuses) nexus->close(false, [] {});
  reactors.run();
  make_unit_with(nullptr);
  a = open("a");
  Task& refused = begin_out(*a, PrOutAction::kRegister, {.service_action_key = 0xa, .flags = 1});
  EXPECT_EQ(run(refused).sense(), 0x052600u);
  enlist(*a, 0xa);
  EXPECT_EQ(in(*a, 2).answer()[2] & 0x01, 0) << "PTPL_C";
  EXPECT_TRUE(unit->restore_reservations());
}

// --- PREEMPT AND ABORT

TEST_F(ReservationCommandsTest, PreemptAndAbortAnswersOnlyAfterTheVictimsCommandsEnd) {
  enlist(*a, 0xa);
  enlist(*b, 0xb);
  reserve(*a, 0xa, kWero);
  backend->holds = true;
  Task& write = start(*a, write16(7, 1), Bytes(block, 0xaa));
  Task& bystander = start(*c, read16(100, 1));
  ASSERT_EQ(backend->held.size(), 2u);
  Task& preempt = begin_out(*b, PrOutAction::kPreemptAndAbort,
                            {.key = 0xb, .service_action_key = 0xa, .type = kWero});
  reactors.run();
  EXPECT_FALSE(preempt.done());
  EXPECT_FALSE(write.done());
  backend->release_one();
  EXPECT_TRUE(write.done());
  EXPECT_EQ(write.command.status, Status::kTaskAborted);
  EXPECT_EQ(run(preempt).command.status, Status::kGood);
  EXPECT_FALSE(bystander.done());
  backend->holds = false;
  backend->release_all();
  EXPECT_EQ(bystander.command.status, Status::kGood);
  EXPECT_EQ(attention(*a), 0x062a05u);
  EXPECT_FALSE(writes(*a));
}

TEST_F(ReservationCommandsTest, PreemptAndAbortEndsAVictimsReservationChangeThatWaitsForIt) {
  enlist(*a, 0xa);
  enlist(*b, 0xb);
  store->holds = true;
  Task& preempt =
      begin_out(*b, PrOutAction::kPreemptAndAbort, {.key = 0xb, .service_action_key = 0xa});
  Task& victim = begin_out(*a, PrOutAction::kClear, {.key = 0xa});
  reactors.run();
  store->answer(CommitOutcome::kCommitted);
  EXPECT_EQ(run(preempt).command.status, Status::kGood);
  EXPECT_TRUE(victim.done());
  EXPECT_EQ(state().registrations.size(), 1u) << "the clear never happened";
}

TEST_F(ReservationCommandsTest, PreemptAndAbortSparesTheCommandsOfTheRequestingNexus) {
  enlist(*a, 0xa);
  enlist(*b, 0xa);
  backend->holds = true;
  Task& own = start(*a, read16(0, 1));
  EXPECT_EQ(out(*a, PrOutAction::kPreemptAndAbort, {.key = 0xa, .service_action_key = 0xa}),
            Status::kGood);
  EXPECT_FALSE(own.done());
  backend->holds = false;
  backend->release_all();
  EXPECT_EQ(own.command.status, Status::kGood);
  EXPECT_EQ(attention(*b), 0x062a05u);
}

}  // namespace
}  // namespace sluice::lun
