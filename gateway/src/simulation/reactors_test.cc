// Sessions on different reactors meet: resets, reinstatement, cold reset.
#include "simulation/task_management_fixture.h"

namespace sluice::simulation {
namespace {

class TwoReactors : public testing::Test {
 protected:
  void SetUp() override {
    there_.isid[5] = 2;
    ASSERT_TRUE(here_.login());
    ASSERT_TRUE(there_.login());
    for (Initiator* host : {&here_, &there_}) {
      host->clear_attention();
      host->clear_attention(1);
    }
  }
  pdu::Bhs function(pdu::TaskFunction f) {
    pdu::Bhs h = here_.request(pdu::Opcode::kTaskManagementRequest, true);
    h.set_flags(static_cast<uint8_t>(pdu::kFlagFinal | static_cast<uint8_t>(f)));
    return h;
  }
  void release() {
    gateway_.disk().hold(false);
    gateway_.disk().release_all();
    gateway_.run();
  }
  SimulatedGateway gateway_{{}, 2};
  Initiator here_{gateway_.connect(0)};
  Initiator there_{gateway_.connect(1)};
};

TEST_F(TwoReactors, ALunResetWaitsForCommandsOfTheOtherReactor) {
  gateway_.disk().hold(true);
  const auto read = there_.command(read16(0, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512);
  there_.send(read);
  here_.send(function(pdu::TaskFunction::kLogicalUnitReset));
  EXPECT_TRUE(here_.answers().empty());
  release();
  EXPECT_EQ(here_.answers().size(), 1u);
  const auto a = there_.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.u8(3), 0x40) << "TASK ABORTED";
  EXPECT_EQ(there_.execute(kTestUnitReady, 0).asc, 0x29);
}

TEST_F(TwoReactors, AResetEndsEvenIfItsInitiatorDisconnects) {
  gateway_.disk().hold(true);
  there_.send(there_.command(read16(0, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512));
  here_.send(function(pdu::TaskFunction::kLogicalUnitReset));
  here_.connection().hang_up();
  there_.connection().hang_up();
  release();
  EXPECT_TRUE(here_.connection().ended());
  EXPECT_TRUE(there_.connection().ended());
}

TEST_F(TwoReactors, ReinstatementOnAnotherReactorWaitsForCommandsInFlight) {
  gateway_.disk().hold(true);
  here_.send(here_.command(read16(0, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512));
  Initiator again(gateway_.connect(1));
  EXPECT_FALSE(again.login());
  release();
  const auto a = again.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.u16(36), 0);
  EXPECT_TRUE(here_.connection().ended());
  EXPECT_EQ(again.execute(kTestUnitReady, 0).asc, 0x29);
}

TEST_F(TwoReactors, AColdResetEndsSessionsOnAllReactors) {
  here_.send(function(pdu::TaskFunction::kTargetColdReset));
  EXPECT_EQ(here_.answers().size(), 1u);
  EXPECT_TRUE(here_.connection().ended());
  EXPECT_TRUE(there_.connection().ended());
}

TEST_F(TwoReactors, DataWrittenOnOneReactorIsReadOnAnother) {
  const std::vector<uint8_t> data(4096, 0x77);
  EXPECT_EQ(here_.execute(write16(0, 8), 0, data).status, 0);
  EXPECT_EQ(there_.execute(read16(0, 8), 4096).data, data);
}

}  // namespace
}  // namespace sluice::simulation
