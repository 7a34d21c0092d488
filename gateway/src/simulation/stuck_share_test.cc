// Commands for units that are stuck leave a part of the session's command window to the other LUNs
// (DESIGN R15, iscsi/stuck_share.h).
#include <vector>

#include "base/limits.h"
#include "scsi/sense.h"
#include "simulation/host_fixture.h"

namespace sluice::simulation {
namespace {

constexpr uint32_t kWindow = limits::kDefaultCommandWindow;
constexpr uint32_t kShare = kWindow / 2;
constexpr uint64_t kHung = 0;  // LUN numbers
constexpr uint64_t kLive = 1;

class StuckShareTest : public HostSequence {
 protected:
  void SetUp() override {
    HostSequence::SetUp();
    look();
  }
  // READs of blocks that no other command uses.
  void read(uint32_t count, uint64_t lun = kHung) {
    for (uint32_t i = 0; i < count; ++i) {
      host_.send(
          host_.command(read16(next_block_++, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512, lun));
    }
    look();
  }
  void look() {
    for (const Answer& a : host_.answers()) {
      max_cmd_sn_ = a.header.u32(32);
      if (a.header.opcode() == pdu::Opcode::kNopIn) continue;
      const bool read_answered = a.header.opcode() == pdu::Opcode::kDataIn;
      const auto status = static_cast<scsi::Status>(a.header.data()[3]);
      if (read_answered || status == scsi::Status::kGood) ++good_;
      if (!read_answered && status == scsi::Status::kBusy) ++busy_;
    }
  }
  // How many commands the host may send now.
  uint32_t room() const { return max_cmd_sn_ - host_.cmd_sn + 1; }
  void become_stuck() {
    gateway_.disk(kHung).hold(true);
    find_progress();
    gateway_.advance(limits::kUnitStuck);
    find_progress();
    ASSERT_TRUE(gateway_.unit(kHung)->stuck());
    pass_tick();
  }
  void find_progress() { gateway_.unit(kHung)->poll_progress(gateway_.shard().now); }
  void pass_tick() {
    gateway_.advance(2 * limits::kTick);
    look();
  }
  void release() {
    gateway_.disk(kHung).hold(false);
    gateway_.disk(kHung).release_all();
    gateway_.run();
    find_progress();
    pass_tick();
  }

  uint64_t next_block_ = 0;
  uint32_t max_cmd_sn_ = 0;
  unsigned good_ = 0;
  unsigned busy_ = 0;
};

TEST_F(StuckShareTest, HalfOfAFullWindowIsFreedForOtherLUNs) {
  gateway_.disk(kHung).hold(true);
  read(kWindow);
  pass_tick();
  EXPECT_EQ(room(), 0u) << "the unit is not stuck yet, and its commands count";
  become_stuck();
  EXPECT_EQ(room(), kShare);
  read(kShare, kLive);
  EXPECT_EQ(good_, kShare);
  EXPECT_EQ(busy_, 0u);
  EXPECT_EQ(gateway_.disk(kHung).waiting(), kWindow) << "commands that were accepted wait";
}

TEST_F(StuckShareTest, CommandsForStuckUnitsBeyondTheShareGetBusy) {
  gateway_.disk(kHung).hold(true);
  read(kShare - 1);
  become_stuck();
  read(2);
  EXPECT_EQ(busy_, 1u) << "one is within the share";
  pass_tick();
  read(kShare);
  EXPECT_EQ(busy_, 1u + kShare);
  EXPECT_EQ(room(), kShare) << "answered commands free their numbers";
  read(1, kLive);
  EXPECT_EQ(good_, 1u);
}

TEST_F(StuckShareTest, OfAnotherSessionIsItsOwn) {
  gateway_.disk(kHung).hold(true);
  read(kWindow);
  become_stuck();
  other_.send(other_.command(read16(next_block_, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512));
  for (const Answer& a : other_.answers()) {
    EXPECT_EQ(a.header.opcode(), pdu::Opcode::kNopIn) << "its command waits";
  }
  EXPECT_EQ(gateway_.disk(kHung).waiting(), kWindow + 1);
}

TEST_F(StuckShareTest, TheWholeWindowIsAvailableAfterTheUnitContinues) {
  gateway_.disk(kHung).hold(true);
  read(kWindow);
  become_stuck();
  read(kShare);  // BUSY
  release();
  EXPECT_EQ(good_, kWindow);
  EXPECT_EQ(room(), kWindow);
  gateway_.disk(kHung).hold(true);
  read(kWindow);
  EXPECT_EQ(busy_, kShare) << "no more than before";
  EXPECT_EQ(room(), 0u);
  release();
  EXPECT_EQ(good_, 2 * kWindow);
  EXPECT_EQ(room(), kWindow);
}

// A fast disk completes many commands between its return and the next poll of its unit.
TEST_F(StuckShareTest, NoCommandGetsBusyAfterTheUnitContinuesAndBeforeItIsPolled) {
  gateway_.disk(kHung).hold(true);
  read(1);
  become_stuck();
  gateway_.disk(kHung).hold(false);
  gateway_.disk(kHung).release_all();
  gateway_.run();
  ASSERT_TRUE(gateway_.unit(kHung)->stuck()) << "as of the last poll";
  for (uint32_t i = 0; i < 2 * kWindow; ++i) read(1);
  EXPECT_EQ(busy_, 0u);
  EXPECT_EQ(good_, 1 + 2 * kWindow);
}

// A number that was freed is freed once: also if the command is aborted, and completes later.
TEST_F(StuckShareTest, AbortedCommandsWithFreedNumbersLeaveTheWindowWhole) {
  gateway_.disk(kHung).hold(true);
  read(kWindow);
  become_stuck();
  pdu::Bhs reset = host_.request(pdu::Opcode::kTaskManagementRequest, true);
  reset.set_flags(pdu::kFlagFinal | 5);  // LOGICAL UNIT RESET
  host_.send(reset);
  gateway_.advance(limits::kAbortBound + 2 * limits::kTick);
  look();
  EXPECT_EQ(room(), kWindow) << "detached commands occupy no number";
  release();
  EXPECT_EQ(room(), kWindow);
}

}  // namespace
}  // namespace sluice::simulation
