// A READ sends from the LUN's own memory where its backend lends it (Backend::borrow). That memory
// has to be there until the peer has taken the bytes, whatever becomes of the LUN and the session.
#include <gtest/gtest.h>

#include "simulation/initiator.h"

namespace sluice::simulation {
namespace {

using pdu::Opcode;
using Bytes = std::vector<uint8_t>;

constexpr uint32_t kBlocks = 128;

class LentMemory : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(host_.login());
    host_.clear_attention();
    fill();
  }
  void fill() {
    for (size_t i = 0; i < data_.size(); ++i) data_[i] = static_cast<uint8_t>(i * 31 + i / 512);
    ASSERT_EQ(host_.execute(write16(0, kBlocks), 0, data_).status, 0);
    unit_ = gateway_.unit(0);
  }
  // A READ whose answer stays in the outbox.
  void read_without_taking_the_answer() {
    host_.connection().set_reading(false);
    host_.send(
        host_.command(read16(0, kBlocks), pdu::kFlagFinal | pdu::kFlagRead | 1, kBlocks * 512));
    ASSERT_GT(host_.connection().core().outbox().bytes(), data_.size());
    ASSERT_EQ(gateway_.buffers().in_use(), 0u) << "the answer is sent from the LUN's memory";
  }
  // What arrives once the peer reads.
  Bytes take() {
    host_.connection().set_reading(true);
    gateway_.run();
    Bytes all;
    for (const Answer& a : host_.answers()) {
      if (a.header.opcode() == Opcode::kDataIn) all.insert(all.end(), a.data.begin(), a.data.end());
    }
    return all;
  }
  bool unit_lives() const { return !unit_.expired(); }

  SimulatedGateway gateway_;
  Initiator host_{gateway_.connect()};
  Bytes data_ = Bytes(size_t{kBlocks} * 512);
  std::weak_ptr<lun::Unit> unit_;
};

TEST_F(LentMemory, OutlivesItsRemovedLunUntilTheBytesWereSent) {
  read_without_taking_the_answer();
  gateway_.remove_lun(0);
  EXPECT_TRUE(unit_lives());
  EXPECT_EQ(take(), data_);
  EXPECT_FALSE(unit_lives());
  EXPECT_EQ(host_.execute(kTestUnitReady, 0).asc, 0x25) << "the LUN itself is gone";
}

TEST_F(LentMemory, OfARemovedLunIsReleasedWithTheConnection) {
  read_without_taking_the_answer();
  gateway_.remove_lun(0);
  host_.connection().hang_up();
  EXPECT_TRUE(host_.connection().ended());
  gateway_.forget(host_.connection());
  EXPECT_FALSE(unit_lives());
}

TEST_F(LentMemory, OutlivesALoggedOutSessionUntilTheBytesWereSent) {
  read_without_taking_the_answer();
  pdu::Bhs logout = host_.request(Opcode::kLogoutRequest, true);
  logout.set_flags(pdu::kFlagFinal);
  host_.send(logout);
  ASSERT_TRUE(host_.connection().ended());
  gateway_.remove_lun(0);
  EXPECT_TRUE(unit_lives());
  EXPECT_EQ(take(), data_);
  EXPECT_FALSE(unit_lives());
}

TEST_F(LentMemory, IsReleasedAfterAllBytesWereSent) {
  read_without_taking_the_answer();
  EXPECT_EQ(take(), data_);
  gateway_.remove_lun(0);
  EXPECT_FALSE(unit_lives()) << "an idle session keeps no removed LUN";
}

}  // namespace
}  // namespace sluice::simulation
