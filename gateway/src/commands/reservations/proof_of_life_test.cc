// Answers about reservations from memory wait for the backend's fence check (DESIGN R2).
#include <gtest/gtest.h>

#include "commands/reservations/reservation_commands_fixture.h"

namespace sluice::lun {
namespace {

using backend::Op;
using scsi::PrOutAction;
using scsi::Status;

Bytes read_keys() { return {0x5e, 0, 0, 0, 0, 0, 0, 0, 255, 0}; }

class ProofOfLifeTest : public ReservationCommandsTest {
 protected:
  void SetUp() override {
    ReservationCommandsTest::SetUp();
    enlist(*a, 0xa);
    backend->submitted.clear();
  }
  // Sends a command that must ask the backend, and be dropped unanswered if that is fenced.
  void expect_fence_check(Nexus& nexus, const Bytes& cdb, Bytes data = {}) {
    SCOPED_TRACE(testing::PrintToString(cdb));
    backend->submitted.clear();
    backend->holds = true;
    Task& good = start(nexus, cdb, data);
    reactors.run();
    ASSERT_EQ(backend->held.size(), 1u);
    EXPECT_EQ(backend->held[0]->op, Op::kCheckFence);
    EXPECT_EQ(good.completions, 0) << "not before the fence check";
    backend->release_one();
    EXPECT_EQ(run(good).command.status, Status::kGood);
    EXPECT_EQ(backend->submitted.size(), 1u);
    Task& fenced = start(nexus, cdb, std::move(data));
    reactors.run();
    backend->fail_with = -ESHUTDOWN;
    backend->release_one();
    EXPECT_EQ(run(fenced).command.outcome, Outcome::kUnknown);
    EXPECT_TRUE(fenced.answer().empty());
    backend->fail_with = 0;
    backend->holds = false;
  }
};

TEST_F(ProofOfLifeTest, PersistentReserveInIsAnsweredOnlyAfterTheFenceCheck) {
  for (uint8_t action : {0, 1, 2, 3}) {
    expect_fence_check(*b, {0x5e, action, 0, 0, 0, 0, 0, 0, 255, 0});
  }
}

TEST_F(ProofOfLifeTest, AReserveThatChangesNothingIsAnsweredOnlyAfterTheFenceCheck) {
  reserve(*a, 0xa, kWe);
  Bytes again(24);
  put_be(again, 0, 8, 0xa);
  // RESERVE by who holds it already
  expect_fence_check(*a, {0x5f, 1, 1, 0, 0, 0, 0, 0, 24, 0}, again);
}

TEST_F(ProofOfLifeTest, Reserve6AndRelease6AreAnsweredOnlyAfterTheFenceCheck) {
  ASSERT_EQ(out(*a, PrOutAction::kClear, {.key = 0xa}), Status::kGood);
  expect_fence_check(*b, {0x16, 0, 0, 0, 0, 0});
  expect_fence_check(*b, {0x17, 0, 0, 0, 0, 0});
}

TEST_F(ProofOfLifeTest, CommittedAndRefusedCommandsNeedNoFenceCheck) {
  backend->holds = true;
  EXPECT_EQ(out(*b, PrOutAction::kRegister, {.service_action_key = 0xb}), Status::kGood);
  EXPECT_EQ(out(*b, PrOutAction::kRegister, {.key = 0xc, .service_action_key = 0xb}),
            Status::kReservationConflict);
  EXPECT_TRUE(backend->submitted.empty());
}

TEST_F(ProofOfLifeTest, AnAnswerShowsTheStateCommittedAtTheTimeOfTheFenceCheck) {
  backend->holds = true;
  Task& keys = start(*b, read_keys());
  enlist(*b, 0xb);
  backend->release_one();
  EXPECT_EQ(run(keys).answer().size(), 8 + 2 * 8u);
}

TEST_F(ProofOfLifeTest, AStateThatBecomesUncertainIsShownOnlyAfterAnotherFenceCheck) {
  backend->holds = true;
  Task& keys = start(*b, read_keys());
  store->outcome = CommitOutcome::kUnknown;
  store->holds_reads = true;
  begin_out(*c, PrOutAction::kRegister, {.service_action_key = 0xc});
  reactors.run();
  backend->release_one();
  reactors.run();
  EXPECT_EQ(keys.completions, 0);
  store->kept = store->states.back();
  store->answer_read();
  reactors.run();
  EXPECT_EQ(keys.completions, 0) << "the fence is checked again";
  backend->release_one();
  EXPECT_EQ(run(keys).answer().size(), 8 + 2 * 8u);
}

TEST_F(ProofOfLifeTest, ACommandAbortedDuringTheFenceCheckEndsAborted) {
  backend->holds = true;
  Task& keys = start(*b, read_keys());
  b->close(false, [] {});
  reactors.run();
  EXPECT_EQ(keys.completions, 0);
  backend->release_one();
  EXPECT_TRUE(run(keys).command.aborted());
  EXPECT_TRUE(keys.answer().empty());
}

}  // namespace
}  // namespace sluice::lun
