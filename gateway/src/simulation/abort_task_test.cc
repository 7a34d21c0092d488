// ABORT TASK in every stage of a command (RFC 7143 §11.5, §11.6.1).
#include "simulation/task_management_fixture.h"

namespace sluice::simulation {
namespace {

using pdu::Opcode;

class AbortTask : public TaskManagement {};

TEST_F(AbortTask, IsAnsweredAfterTheBackendCompletesTheCommand) {
  gateway_.disk().hold(true);
  const auto read = start_read(host_);
  const auto abort = abort_of(read);
  host_.send(abort);
  EXPECT_TRUE(host_.answers().empty()) << "R5: the read is still in the backend";
  release();
  expect_only(host_, abort, kComplete);
  expect_all_is_well(host_);
}

TEST_F(AbortTask, IsAnsweredForEachRepeatedRequest) {
  gateway_.disk().hold(true);
  const auto read = start_read(host_);
  const auto first = abort_of(read);
  const auto second = abort_of(read);
  host_.send(first);
  host_.send(second);
  EXPECT_TRUE(host_.answers().empty());
  release();
  const auto answers = host_.answers();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].header.itt(), first.itt());
  EXPECT_EQ(answers[1].header.itt(), second.itt());
}

TEST_F(AbortTask, EndsACommandThatAwaitsUnsolicitedData) {
  const auto write = start_write(host_, true);
  const auto abort = abort_of(write);
  host_.send(abort);
  expect_only(host_, abort, kComplete);
  host_.send(host_.data_out(write.itt(), pdu::kReservedTag, 0, 0, true),
             ByteView(data_).first(4096));
  EXPECT_TRUE(host_.answers().empty()) << "late data is ignored";
  expect_all_is_well(host_);
}

TEST_F(AbortTask, EndsACommandThatAwaitsSolicitedData) {
  const auto write = start_write(host_, false);
  const auto r2t = host_.answer();
  ASSERT_TRUE(r2t && r2t->header.opcode() == pdu::Opcode::kR2t);
  const auto abort = abort_of(write);
  host_.send(abort);
  expect_only(host_, abort, kComplete);
  host_.send(host_.data_out(write.itt(), r2t->header.target_transfer_tag(), 0, 0, true), data_);
  EXPECT_TRUE(host_.answers().empty());
  EXPECT_EQ(host_.execute(read16(0, 16), 8192).data, std::vector<uint8_t>(8192, 0))
      << "nothing was written";
}

TEST_F(AbortTask, EndsARefusedCommandThatWaitsForItsAnnouncedData) {
  const auto write = host_.command(write16(1 << 30, 16), pdu::kFlagWrite | 1, 8192);
  host_.send(write);
  EXPECT_TRUE(host_.answers().empty());
  const auto abort = abort_of(write);
  host_.send(abort);
  expect_only(host_, abort, kComplete);
  expect_all_is_well(host_);
}

TEST_F(AbortTask, EndsACommandThatWaitsForOutputMemory) {
  host_.connection().set_reading(false);
  std::vector<pdu::Bhs> reads;
  for (int i = 0; i < 8; ++i) {
    reads.push_back(host_.command(read16(0, 4096), pdu::kFlagFinal | pdu::kFlagRead | 1, 2 << 20));
    host_.send(reads.back());
  }
  host_.send(abort_of(reads[6]));
  host_.connection().set_reading(true);
  gateway_.run();
  std::vector<uint32_t> ended;
  for (const Answer& a : host_.answers()) {
    if (a.header.flags() & pdu::kFlagStatus && a.header.opcode() == Opcode::kDataIn) {
      ended.push_back(a.header.itt());
    }
  }
  EXPECT_EQ(ended.size(), 7u);
  for (const uint32_t itt : ended) EXPECT_NE(itt, reads[6].itt());
  expect_all_is_well(host_);
}

TEST_F(AbortTask, OfAnAnsweredCommandReturnsTaskDoesNotExist) {
  const auto read = start_read(host_);
  ASSERT_EQ(host_.answers().size(), 1u);
  const auto abort = abort_of(read);
  host_.send(abort);
  expect_only(host_, abort, kNoSuchTask);
}

TEST_F(AbortTask, OfACommandOfAnotherLunReturnsTaskDoesNotExist) {
  gateway_.disk().hold(true);
  const auto read = start_read(host_);
  pdu::Bhs abort = abort_of(read);
  abort.set_lun(uint64_t{1} << 48);
  host_.send(abort);
  expect_only(host_, abort, kNoSuchTask);
  abort = abort_of(read);
  abort.set_lun(uint64_t{0x4000} << 48);  // flat space addressing of LUN 0
  host_.send(abort);
  release();
  expect_only(host_, abort, kComplete);
}

// The command is lost on the way: its number counts as received, and should it come, it is stale.
TEST_F(AbortTask, OfACommandThatDidNotArriveConsumesItsCmdSn) {
  const auto lost = host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0);
  const auto abort = abort_of(lost);
  host_.send(abort);
  const auto a = host_.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.u8(2), kComplete);
  EXPECT_EQ(a->header.u32(28), lost.cmd_sn() + 1) << "ExpCmdSN";
  host_.send(lost);
  EXPECT_TRUE(host_.answers().empty());
  expect_all_is_well(host_);
}

TEST_F(AbortTask, OfALostCommandAllowsLaterCommandsToRun) {
  const auto lost = host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0);
  const auto next = host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0);
  host_.send(next);
  EXPECT_TRUE(host_.answers().empty());
  host_.send(abort_of(lost));
  const auto answers = host_.answers();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].header.opcode(), Opcode::kTaskManagementResponse);
  EXPECT_EQ(answers[1].header.itt(), next.itt());
  expect_all_is_well(host_);
}

TEST_F(AbortTask, OfACommandReceivedOutOfOrderPreventsItsExecution) {
  const auto missing = host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0);
  const auto early = host_.command(write16(0, 8), pdu::kFlagFinal | pdu::kFlagWrite | 1, 4096);
  host_.send(early, ByteView(data_).first(4096));
  const auto abort = abort_of(early);
  host_.send(abort);
  expect_only(host_, abort, kComplete);
  host_.send(missing);
  const auto a = host_.answer();
  ASSERT_TRUE(a) << "only the missing one answers";
  EXPECT_EQ(a->header.itt(), missing.itt());
  EXPECT_EQ(host_.execute(read16(0, 8), 4096).data, std::vector<uint8_t>(4096, 0));
  EXPECT_EQ(gateway_.buffers().in_use(), 0u);
}

TEST_F(AbortTask, OfTwoLostCommandsConsumesBothCmdSnsInAnyOrder) {
  const auto first = host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0);
  const auto second = host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0);
  host_.send(abort_of(second));
  host_.send(abort_of(first));
  const auto answers = host_.answers();
  ASSERT_EQ(answers.size(), 2u);
  for (const Answer& a : answers) EXPECT_EQ(a.header.u8(2), kComplete);
  expect_all_is_well(host_);
}

TEST_F(AbortTask, WithARefCmdSnOutsideTheWindowReturnsTaskDoesNotExist) {
  for (const uint32_t ref : {host_.cmd_sn - 1, host_.cmd_sn, host_.cmd_sn + 5000}) {
    const auto abort = function(host_, Function::kAbortTask, 0, 0xabcd, ref);
    host_.send(abort);
    expect_only(host_, abort, kNoSuchTask);
  }
  expect_all_is_well(host_);
}

TEST_F(AbortTask, IsExecutedAsANonImmediateRequest) {
  gateway_.disk().hold(true);
  const auto read = start_read(host_);
  pdu::Bhs abort = host_.request(Opcode::kTaskManagementRequest, false);
  abort.set_flags(pdu::kFlagFinal | 1);
  abort.put32(20, read.itt());
  abort.put32(32, read.cmd_sn());
  host_.send(abort);
  release();
  expect_only(host_, abort, kComplete);
}

TEST_F(AbortTask, RestoresTheCommandWindow) {
  for (int i = 0; i < 500; ++i) {
    const auto write = start_write(host_, false);
    ASSERT_EQ(host_.answers().size(), 1u) << "the R2T";
    host_.send(abort_of(write));
    const auto a = host_.answer();
    ASSERT_TRUE(a) << i;
    EXPECT_EQ(a->header.u32(32) - a->header.u32(28) + 1, limits::kDefaultCommandWindow);
  }
}

TEST_F(AbortTask, FunctionsInProgressAreBounded) {
  gateway_.disk().hold(true);
  const auto read = start_read(host_);
  for (uint32_t i = 0; i < limits::kMaxImmediateCommands; ++i) host_.send(abort_of(read));
  EXPECT_TRUE(host_.answers().empty());
  host_.send(abort_of(read));
  const auto a = host_.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.opcode(), Opcode::kReject);
  EXPECT_EQ(a->header.u8(2), 0x06);
  release();
  EXPECT_EQ(host_.answers().size(), limits::kMaxImmediateCommands);
  host_.send(abort_of(read));
  EXPECT_TRUE(host_.answer()) << "and there is room again";
}

}  // namespace
}  // namespace sluice::simulation
