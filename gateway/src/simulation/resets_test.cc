// Task management of whole task sets, LUNs and targets, and what other sessions see of it
// (RFC 7143 §11.5, SAM-5 §7).
#include "simulation/task_management_fixture.h"

namespace sluice::simulation {
namespace {

using pdu::Opcode;

class Resets : public TaskManagement {
 protected:
  void expect_reset_attention(Initiator& host, uint64_t lun) {
    const auto o = host.execute(kTestUnitReady, 0, {}, lun);
    EXPECT_EQ(o.status, 2);
    EXPECT_EQ(o.sense_key, 6);
    EXPECT_EQ(o.asc, 0x29);
    EXPECT_EQ(host.execute(kTestUnitReady, 0, {}, lun).status, 0) << "reported once";
  }
};

TEST_F(Resets, AbortTaskSetEndsThisSessionsTasksOfThatLunOnly) {
  log_in_other();
  gateway_.disk().hold(true);
  start_read(host_);
  start_write(host_, true);
  start_write(host_, false);
  ASSERT_EQ(host_.answers().size(), 1u) << "the R2T";
  const auto others = start_read(*other_);
  gateway_.disk(1).hold(true);
  const auto elsewhere = start_read(host_, 1);
  const auto f = function(host_, Function::kAbortTaskSet);
  host_.send(f);
  EXPECT_TRUE(host_.answers().empty()) << "R5";
  release();
  expect_only(host_, f, kComplete);
  const auto theirs = other_->answer();
  ASSERT_TRUE(theirs);
  EXPECT_EQ(theirs->header.itt(), others.itt());
  gateway_.disk(1).release_all();
  gateway_.run();
  const auto a = host_.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.itt(), elsewhere.itt());
  EXPECT_EQ(other_->execute(kTestUnitReady, 0).status, 0) << "no unit attention";
}

TEST_F(Resets, ClearTaskSetEndsOnlyTheTasksOfItsNexusAccordingToTst) {
  log_in_other();
  gateway_.disk().hold(true);
  start_read(host_);
  start_read(*other_);
  const auto f = function(host_, Function::kClearTaskSet);
  host_.send(f);
  release();
  expect_only(host_, f, kComplete);
  EXPECT_EQ(other_->answers().size(), 1u);
}

TEST_F(Resets, AbortTaskSetDiscardsCommandsReceivedOutOfOrder) {
  const auto missing = host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0);
  host_.send(host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0));
  const auto spared = host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0, 1);
  host_.send(spared);
  const auto f = function(host_, Function::kAbortTaskSet);
  host_.send(f);
  expect_only(host_, f, kComplete);
  host_.send(missing);
  std::vector<uint32_t> tags;
  for (const Answer& a : host_.answers()) tags.push_back(a.header.itt());
  EXPECT_EQ(tags, (std::vector{missing.itt(), spared.itt()}));
  expect_all_is_well(host_);
}

TEST_F(Resets, ALunResetEndsTheTasksOfAllNexusesAndEstablishesUnitAttentions) {
  log_in_other();
  gateway_.disk().hold(true);
  start_read(host_);
  const auto theirs = start_read(*other_);
  const auto their_write = start_write(*other_, false);
  ASSERT_EQ(other_->answers().size(), 1u) << "the R2T";
  const auto f = function(host_, Function::kLogicalUnitReset);
  host_.send(f);
  EXPECT_TRUE(host_.answers().empty()) << "R5: two reads are in the backend";
  const auto early = other_->answer();
  ASSERT_TRUE(early) << "what only waited for data ends at once";
  EXPECT_EQ(early->header.itt(), their_write.itt());
  EXPECT_EQ(early->header.u8(3), 0x40) << "TASK ABORTED";
  gateway_.disk().release_one();
  gateway_.run();
  EXPECT_TRUE(host_.answers().empty()) << "one is still there";
  release();
  expect_only(host_, f, kComplete);
  const auto aborted = other_->answer();
  ASSERT_TRUE(aborted);
  EXPECT_EQ(aborted->header.itt(), theirs.itt());
  EXPECT_EQ(aborted->header.u8(3), 0x40);
  EXPECT_TRUE(aborted->data.empty());
  expect_reset_attention(host_, 0);
  expect_reset_attention(*other_, 0);
  EXPECT_EQ(host_.execute(kTestUnitReady, 0, {}, 1).status, 0) << "not of LUN 1";
}

TEST_F(Resets, ALunResetDoesNotAbortLaterCommands) {
  gateway_.disk().hold(true);
  const auto f = function(host_, Function::kLogicalUnitReset);
  auto bytes = host_.frame(f);
  const auto ready = host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0);
  const auto read = host_.command(read16(0, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512);
  for (const pdu::Bhs& h : {ready, read}) {
    const auto more = host_.frame(h);
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  host_.connection().send(bytes);  // one receive: nothing posted runs in between
  release();
  const auto answers = host_.answers();
  ASSERT_EQ(answers.size(), 3u) << "attention, response and the read's data";
  EXPECT_EQ(answers[0].header.itt(), ready.itt());
  EXPECT_EQ(answers[0].header.u8(3), 2);
  EXPECT_EQ(answers[2].header.itt(), read.itt());
  EXPECT_EQ(answers[2].header.opcode(), Opcode::kDataIn);
}

TEST_F(Resets, AWarmResetResetsEveryLun) {
  log_in_other();
  gateway_.disk().hold(true);
  gateway_.disk(1).hold(true);
  start_read(host_);
  start_read(*other_, 1);
  const auto f = function(host_, Function::kTargetWarmReset);
  host_.send(f);
  EXPECT_TRUE(host_.answers().empty());
  gateway_.disk(1).hold(false);
  gateway_.disk(1).release_all();
  gateway_.run();
  EXPECT_TRUE(host_.answers().empty());
  release();
  expect_only(host_, f, kComplete);
  EXPECT_EQ(other_->answers().size(), 1u);
  for (const uint64_t lun : {0, 1}) {
    expect_reset_attention(host_, lun);
    expect_reset_attention(*other_, lun);
  }
}

TEST_F(Resets, AColdResetIsAnsweredAndClosesEverySession) {
  log_in_other();
  gateway_.disk().hold(true);
  start_read(*other_);
  const auto f = function(host_, Function::kTargetColdReset);
  host_.send(f);
  EXPECT_FALSE(host_.connection().closed());
  release();
  expect_only(host_, f, kComplete);
  EXPECT_TRUE(host_.connection().closed());
  EXPECT_TRUE(other_->connection().closed());
  EXPECT_TRUE(host_.connection().ended());
  EXPECT_TRUE(other_->connection().ended());
}

TEST_F(Resets, AbsentLunsAndUnsupportedFunctionsAreReported) {
  struct Case {
    Function function;
    uint64_t lun;
    uint8_t response;
  };
  for (const Case& c : std::initializer_list<Case>{{Function::kAbortTaskSet, 7, kNoSuchLun},
                                                   {Function::kLogicalUnitReset, 7, kNoSuchLun},
                                                   {Function::kLogicalUnitReset, 0xc101, kComplete},
                                                   {Function::kClearAca, 0, 5},
                                                   {Function::kTaskReassign, 0, 4},
                                                   {static_cast<Function>(0), 0, 5},
                                                   {static_cast<Function>(9), 0, 5},
                                                   {static_cast<Function>(0x7f), 0, 5}}) {
    const auto f = function(host_, c.function, c.lun);
    host_.send(f);
    expect_only(host_, f, c.response);
  }
  expect_all_is_well(host_);
}

TEST_F(Resets, InvalidTaskManagementRequestsAreRejected) {
  pdu::Bhs f = function(host_, Function::kLogicalUnitReset);
  f.set_itt(pdu::kReservedTag);
  host_.send(f);
  auto a = host_.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.u8(2), 0x09);
  host_.send(function(host_, Function::kLogicalUnitReset), std::vector<uint8_t>(4));
  a = host_.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.u8(2), 0x09);
  gateway_.disk().hold(true);
  const auto read = start_read(host_);
  f = function(host_, Function::kLogicalUnitReset);
  f.set_itt(read.itt());
  host_.send(f);
  a = host_.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.u8(2), 0x07) << "the tag is in use";
  release();
  EXPECT_EQ(host_.answers().size(), 1u);
}

// Writes that wait for data occupy the whole window. A reset by another host frees it with
// responses; a reset by the host itself does so without responses, so a NOP-In must announce it.
TEST_F(Resets, ACommandWindowThatReopensWithoutAResponseIsAnnouncedByNopIn) {
  iscsi::Settings settings;
  settings.command_window = 2;
  SimulatedGateway small(settings);
  Initiator host(small.connect());
  ASSERT_TRUE(host.login(kKeys));
  host.clear_attention();
  small.disk().hold(true);
  start_read(host);
  start_write(host, false);
  ASSERT_EQ(host.answers().size(), 1u) << "the R2T";
  const auto f = function(host, Function::kAbortTaskSet);
  host.send(f);
  const auto news = host.answer();
  ASSERT_TRUE(news) << "the write is gone, the read is not";
  EXPECT_EQ(news->header.opcode(), Opcode::kNopIn);
  EXPECT_EQ(news->header.itt(), pdu::kReservedTag);
  EXPECT_EQ(news->header.target_transfer_tag(), pdu::kReservedTag);
  EXPECT_EQ(news->header.u32(32), host.cmd_sn) << "MaxCmdSN: one place";
  small.disk().release_all();
  small.run();
  expect_only(host, f, kComplete);
}

}  // namespace
}  // namespace sluice::simulation
