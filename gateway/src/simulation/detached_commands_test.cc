// Task management, logout and reinstatement while a device does not complete the commands that they
// end: the answer follows after limits::kAbortBound, and the commands keep their blocks (DESIGN
// R5).
#include "simulation/gateway_pair.h"
#include "simulation/task_management_fixture.h"

namespace sluice::simulation {
namespace {

using pdu::Opcode;

// Answers without pings.
std::vector<Answer> answers_of(Initiator& host) {
  std::vector<Answer> all = host.answers();
  std::erase_if(all, [](const Answer& a) { return a.header.opcode() == Opcode::kNopIn; });
  return all;
}

class DetachedCommands : public TaskManagement {
 protected:
  void SetUp() override {
    TaskManagement::SetUp();
    gateway_.disk().hold(true);
  }
  void pass_bound() { gateway_.advance(2 * limits::kTick); }
  void almost_reach_bound() { gateway_.advance(limits::kAbortBound - limits::kTick); }
  static void expect_complete(Initiator& host, const pdu::Bhs& f) {
    const auto all = answers_of(host);
    ASSERT_EQ(all.size(), 1u);
    ASSERT_EQ(all[0].header.opcode(), Opcode::kTaskManagementResponse);
    EXPECT_EQ(all[0].header.itt(), f.itt());
    EXPECT_EQ(all[0].header.u8(2), kComplete);
  }
  void expect_answered_after_the_bound(Initiator& host, const pdu::Bhs& f) {
    almost_reach_bound();
    EXPECT_TRUE(answers_of(host).empty()) << "it waits for the device";
    pass_bound();
    expect_complete(host, f);
  }
  pdu::Bhs write(uint64_t lba, uint8_t value) {
    const auto h = host_.command(write16(lba, 1), pdu::kFlagFinal | pdu::kFlagWrite | 1, 512);
    host_.send(h, std::vector<uint8_t>(512, value));
    return h;
  }
  static void expect_logged_in(Initiator& host) {
    const auto all = answers_of(host);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].header.opcode(), Opcode::kLoginResponse);
    EXPECT_EQ(all[0].header.u16(36), 0) << "status";
  }
  static pdu::Bhs logout(Initiator& host) {
    pdu::Bhs h = host.request(Opcode::kLogoutRequest, true);
    h.set_flags(pdu::kFlagFinal);
    host.send(h);
    return h;
  }
};

TEST_F(DetachedCommands, AbortTaskIsAnsweredAfterTheBound) {
  const auto abort = abort_of(start_read(host_));
  host_.send(abort);
  expect_answered_after_the_bound(host_, abort);
  release();
  EXPECT_TRUE(answers_of(host_).empty()) << "the aborted command gets no answer";
  expect_all_is_well(host_);
}

TEST_F(DetachedCommands, EachRepeatedAbortTaskIsAnsweredAtTheBound) {
  const auto read = start_read(host_);
  host_.send(abort_of(read));
  host_.send(abort_of(read));
  almost_reach_bound();
  EXPECT_TRUE(answers_of(host_).empty());
  pass_bound();
  EXPECT_EQ(answers_of(host_).size(), 2u);
}

TEST_F(DetachedCommands, ADetachedWriteKeepsItsBlocks) {
  const auto abort = abort_of(write(0, 1));
  host_.send(abort);
  expect_answered_after_the_bound(host_, abort);
  const auto retry = write(0, 2);
  EXPECT_EQ(gateway_.disk().waiting(), 1u) << "the retry waits for the blocks of its original";
  EXPECT_TRUE(answers_of(host_).empty());
  release();
  const auto all = answers_of(host_);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].header.itt(), retry.itt());
  EXPECT_EQ(host_.execute(read16(0, 1), 512).data, std::vector<uint8_t>(512, 2));
}

TEST_F(DetachedCommands, TheTagMayBeUsedAgain) {
  const auto read = start_read(host_);
  host_.send(abort_of(read));
  almost_reach_bound();
  pass_bound();
  answers_of(host_);
  auto again = host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0);
  again.set_itt(read.itt());
  host_.send(again);
  const auto all = answers_of(host_);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].header.opcode(), Opcode::kScsiResponse);
  release();
  EXPECT_TRUE(answers_of(host_).empty());
}

// Otherwise the retries of one LUN would use up the session's window for all others.
TEST_F(DetachedCommands, OccupyNoNumberOfTheCommandWindow) {
  const uint32_t window = limits::kDefaultCommandWindow;
  for (uint32_t i = 0; i < window; ++i) {
    host_.send(host_.command(read16(i, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512));
  }
  const auto other_lun = host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0, 1);
  host_.send(other_lun);
  EXPECT_TRUE(answers_of(host_).empty()) << "beyond the window";
  const auto f = function(host_, Function::kAbortTaskSet);
  host_.send(f);
  almost_reach_bound();
  pass_bound();
  expect_complete(host_, f);
  host_.send(other_lun);
  EXPECT_EQ(answers_of(host_).size(), 1u);
  release();
  expect_all_is_well(host_);
}

TEST_F(DetachedCommands, FunctionsOfATaskSetAreAnsweredAfterTheBound) {
  for (const Function f : {Function::kAbortTaskSet, Function::kClearTaskSet,
                           Function::kLogicalUnitReset, Function::kTargetWarmReset}) {
    start_read(host_);
    const auto request = function(host_, f);
    host_.send(request);
    expect_answered_after_the_bound(host_, request);
    host_.clear_attention();
    host_.clear_attention(1);
  }
  release();
  expect_all_is_well(host_);
}

TEST_F(DetachedCommands, OfAnotherNexusGetTaskAbortedWhenTheDeviceCompletesThem) {
  log_in_other();
  const auto theirs = start_read(*other_);
  const auto f = function(host_, Function::kLogicalUnitReset);
  host_.send(f);
  expect_answered_after_the_bound(host_, f);
  EXPECT_TRUE(answers_of(*other_).empty());
  release();
  const auto all = answers_of(*other_);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].header.itt(), theirs.itt());
  EXPECT_EQ(all[0].header.u8(3), 0x40) << "TASK ABORTED";
}

TEST_F(DetachedCommands, OfAnotherNexusEndForGoodWithAFunctionOfTheirOwn) {
  log_in_other();
  const auto theirs = start_read(*other_);
  host_.send(function(host_, Function::kLogicalUnitReset));
  almost_reach_bound();
  pass_bound();
  pdu::Bhs abort = function(*other_, Function::kAbortTask, 0, theirs.itt(), theirs.cmd_sn());
  other_->send(abort);
  expect_complete(*other_, abort);
  release();
  EXPECT_TRUE(answers_of(*other_).empty());
}

TEST_F(DetachedCommands, LogoutIsAnsweredAfterTheBound) {
  start_read(host_);
  logout(host_);
  almost_reach_bound();
  EXPECT_TRUE(answers_of(host_).empty());
  pass_bound();
  const auto all = answers_of(host_);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].header.opcode(), Opcode::kLogoutResponse);
  EXPECT_EQ(all[0].header.u8(2), 0);
  EXPECT_TRUE(host_.connection().closed());
  EXPECT_FALSE(host_.connection().ended()) << "the device still has its memory";
  release();
  EXPECT_TRUE(host_.connection().ended());
  EXPECT_EQ(gateway_.buffers().in_use(), 0u);
}

TEST_F(DetachedCommands, ALoginThatReplacesTheSessionIsAnsweredAfterTheBound) {
  write(0, 1);
  Initiator again(gateway_.connect());
  EXPECT_FALSE(again.login(kKeys));
  almost_reach_bound();
  EXPECT_TRUE(again.answers().empty());
  pass_bound();
  expect_logged_in(again);
  again.clear_attention();
  again.clear_attention(1);
  EXPECT_EQ(again.execute(read16(0, 1), 512, {}, 1).status, 0) << "the other LUN works";
  const auto read = start_read(again);
  EXPECT_EQ(gateway_.disk().waiting(), 1u) << "it waits for the old session's write";
  release();
  EXPECT_TRUE(host_.connection().ended());
  const auto all = answers_of(again);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].header.itt(), read.itt());
  EXPECT_EQ(all[0].data, std::vector<uint8_t>(512, 1));
}

TEST_F(DetachedCommands, TheReservationOfTheNextSessionOutlivesTheOldSession) {
  constexpr std::array<uint8_t, 6> kReserve{0x16, 0, 0, 0, 0, 0};
  start_read(host_);
  Initiator again(gateway_.connect());
  again.login(kKeys);
  almost_reach_bound();
  pass_bound();
  expect_logged_in(again);
  again.clear_attention(1);
  EXPECT_EQ(again.execute(kReserve, 0, {}, 1).status, 0);
  release();
  EXPECT_TRUE(host_.connection().ended());
  log_in_other();
  EXPECT_EQ(other_->execute(read16(0, 1), 512, {}, 1).status, 0x18) << "RESERVATION CONFLICT";
}

// DESIGN R9: the owner answers after the bound, and its gateway passes that on.
TEST(ForwardedDetachedCommands, AreAnsweredThroughTheLinkAfterTheBound) {
  GatewayPair pair;
  const auto nexus = pair.open_nexus();
  pair.owner.disk().hold(true);
  const auto aborted = pair.run(*nexus, read16(0, 1), 512);
  const auto reset = pair.run(*nexus, read16(1, 1), 512);
  nexus->abort(aborted->command);
  int done = -1;
  nexus->logical_unit_reset(0, [&](bool at_owner) { done = at_owner; });
  pair.advance(limits::kAbortBound - limits::kTick);
  EXPECT_FALSE(aborted->ended);
  EXPECT_EQ(done, -1);
  pair.advance(3 * limits::kTick);
  EXPECT_TRUE(aborted->ended);
  EXPECT_TRUE(reset->ended);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(pair.owner.disk().waiting(), 2u);
  bool closed = false;
  nexus->close(false, [&] { closed = true; });
  pair.settle();
  EXPECT_TRUE(closed) << "the owner's session has only detached commands";
  pair.owner.disk().hold(false);
  pair.owner.disk().release_all();
  pair.settle();
}

}  // namespace
}  // namespace sluice::simulation
