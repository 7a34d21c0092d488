// What a session says beside SCSI: NOP, Text, Reject, Async Message (RFC 7143 §11.9-11.11,
// §11.16-11.19), and DESIGN R6's bounds on silence.
#include <gtest/gtest.h>

#include "simulation/initiator.h"

namespace sluice::simulation {
namespace {

using pdu::Opcode;

class Services : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(host_.login());
    host_.clear_attention();
  }
  void answer_ping(const Answer& ping) {
    pdu::Bhs h = host_.request(Opcode::kNopOut, true);
    h.set_itt(pdu::kReservedTag);
    h.put32(20, ping.header.target_transfer_tag());
    host_.send(h);
  }
  void expect_reject(uint8_t reason) {
    const auto a = host_.answer();
    ASSERT_TRUE(a);
    EXPECT_EQ(a->header.opcode(), Opcode::kReject);
    EXPECT_EQ(a->header.u8(2), reason);
    EXPECT_EQ(a->header.itt(), pdu::kReservedTag);
    EXPECT_EQ(a->data.size(), pdu::kBhsSize);
  }
  SimulatedGateway gateway_;
  Initiator host_{gateway_.connect()};
};

TEST_F(Services, ANonImmediateNopOutWithoutATaskTagIsRejected) {
  pdu::Bhs h = host_.request(Opcode::kNopOut, false);
  h.set_itt(pdu::kReservedTag);
  h.put32(20, pdu::kReservedTag);
  host_.send(h);
  expect_reject(static_cast<uint8_t>(pdu::RejectReason::kProtocolError));
  EXPECT_EQ(host_.execute(kTestUnitReady, 0).status, 0) << "the session goes on";
}

TEST_F(Services, EchoesPingsWithTheirData) {
  const std::vector<uint8_t> data = {1, 2, 3, 4, 5};
  for (const bool immediate : {true, false}) {
    const auto h = host_.request(Opcode::kNopOut, immediate);
    host_.send(h, data);
    const auto a = host_.answer();
    ASSERT_TRUE(a);
    EXPECT_EQ(a->header.opcode(), Opcode::kNopIn);
    EXPECT_EQ(a->header.itt(), h.itt());
    EXPECT_EQ(a->header.target_transfer_tag(), pdu::kReservedTag);
    EXPECT_EQ(a->data, data);
    EXPECT_EQ(a->header.u32(28), host_.cmd_sn);
  }
}

// Each PDU comes in a receive buffer of its own here, as on a busy reactor.
TEST_F(Services, UnreadPingAnswersOccupyMemoryInProportionToTheirData) {
  host_.connection().set_reading(false);
  std::vector<std::vector<uint8_t>> all;
  size_t bytes = 0;
  for (const size_t size : {1u, 7u, 48u, 1000u, 4095u, 4096u, 4097u, 8192u}) {
    for (uint8_t i = 0; i < 20; ++i) {
      all.emplace_back(size, static_cast<uint8_t>(size + i));
      bytes += size < limits::kPackedPiece ? 0 : size;
      host_.send(host_.request(Opcode::kNopOut, true), all.back());
    }
  }
  EXPECT_LE(gateway_.buffers().in_use(), 4 * bytes);
  host_.connection().set_reading(true);
  gateway_.run();
  const auto answers = host_.answers();
  ASSERT_EQ(answers.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(answers[i].data, all[i]) << i;
  EXPECT_EQ(gateway_.buffers().in_use(), 0u);
}

TEST_F(Services, ANopOutWithReservedTagsIsNotAnswered) {
  pdu::Bhs h = host_.request(Opcode::kNopOut, true);
  h.set_itt(pdu::kReservedTag);
  h.put32(20, pdu::kReservedTag);
  host_.send(h);
  EXPECT_TRUE(host_.answers().empty());
}

TEST_F(Services, SendsAPingAtTheFirstTick) {
  gateway_.advance(limits::kTick);
  const auto ping = host_.answer();
  ASSERT_TRUE(ping);
  EXPECT_EQ(ping->header.opcode(), Opcode::kNopIn);
}

TEST_F(Services, PingsASilentInitiatorWithoutConsumingAStatSn) {
  gateway_.advance(limits::kTick);
  answer_ping(*host_.answer());
  gateway_.advance(limits::kNopSilence - limits::kTick);
  EXPECT_TRUE(host_.answers().empty());
  gateway_.advance(2 * limits::kTick);
  const auto ping = host_.answer();
  ASSERT_TRUE(ping);
  EXPECT_EQ(ping->header.opcode(), Opcode::kNopIn);
  EXPECT_EQ(ping->header.itt(), pdu::kReservedTag);
  EXPECT_NE(ping->header.target_transfer_tag(), pdu::kReservedTag);
  answer_ping(*ping);
  EXPECT_TRUE(host_.answers().empty());
  host_.send(host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0));
  const auto a = host_.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.u32(24), ping->header.u32(24)) << "StatSN";
}

TEST_F(Services, AnInitiatorThatStopsAnsweringPingsIsDropped) {
  gateway_.advance(limits::kTick);
  const auto ping = host_.answer();
  ASSERT_TRUE(ping);
  answer_ping(*ping);
  gateway_.advance(limits::kNopSilence + limits::kTick);
  ASSERT_EQ(host_.answers().size(), 1u);
  gateway_.advance(limits::kNopTimeout - 2 * limits::kTick);
  EXPECT_FALSE(host_.connection().closed());
  gateway_.advance(3 * limits::kTick);
  EXPECT_TRUE(host_.connection().ended());
}

// DESIGN R6: it gives the path up, however well it is heard.
TEST_F(Services, AnInitiatorThatSendsButDoesNotReceiveIsDropped) {
  gateway_.advance(limits::kTick);
  answer_ping(*host_.answer());
  host_.connection().set_reading(false);
  for (Nanos t = 0; t < limits::kNopSilence + limits::kNopTimeout; t += limits::kTick) {
    EXPECT_FALSE(host_.connection().closed());
    pdu::Bhs h = host_.request(Opcode::kNopOut, true);
    h.set_itt(pdu::kReservedTag);
    h.put32(20, pdu::kReservedTag);
    host_.send(h);
    gateway_.advance(limits::kTick);
  }
  gateway_.advance(limits::kTick);
  EXPECT_TRUE(host_.connection().ended());
}

// Megabytes of data on a slow line are no silence.
TEST_F(Services, APingIsSentBeforeWaitingData) {
  gateway_.advance(limits::kTick);
  answer_ping(*host_.answer());
  gateway_.advance(limits::kTick);
  host_.connection().set_reading(false);
  for (int i = 0; i < 4; ++i) {
    host_.send(host_.command(read16(0, 4096), pdu::kFlagFinal | pdu::kFlagRead | 1, 2 << 20));
  }
  gateway_.advance(limits::kNopSilence + limits::kTick);
  host_.connection().set_reading(true);
  gateway_.run();
  const auto answers = host_.answers();
  const pdu::Bhs& ping = answers.at(0).header;
  EXPECT_EQ(ping.opcode(), Opcode::kNopIn);
  uint32_t statuses = 0;
  for (const Answer& a : answers) {
    if (a.header.opcode() != Opcode::kDataIn || !(a.header.flags() & pdu::kFlagStatus)) continue;
    EXPECT_EQ(a.header.u32(24), ping.u32(24) + statuses++) << "StatSN: the ping had the next";
  }
  EXPECT_EQ(statuses, 4u);
}

TEST_F(Services, NoPingIsSentBeforeTheLoginResponse) {
  Initiator slow(gateway_.connect());
  slow.connection().set_reading(false);
  slow.isid[5] = 2;
  EXPECT_FALSE(slow.login()) << "nothing is read yet";
  gateway_.advance(limits::kNopSilence + limits::kTick);
  slow.connection().set_reading(true);
  gateway_.run();
  EXPECT_EQ(slow.answers().at(0).header.opcode(), Opcode::kLoginResponse);
}

TEST_F(Services, AnInitiatorThatAcknowledgesResponsesIsNotPinged) {
  gateway_.advance(limits::kTick);
  answer_ping(*host_.answer());
  for (Nanos t = 0; t < 3 * limits::kNopSilence; t += limits::kTick) {
    host_.send(host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0));
    const auto a = host_.answer();
    ASSERT_TRUE(a);
    EXPECT_EQ(a->header.opcode(), Opcode::kScsiResponse);
    gateway_.advance(limits::kTick);
  }
  EXPECT_TRUE(host_.answers().empty());
}

TEST_F(Services, ADroppedNexusEndsItsSessionWithNexusLoss) {
  const auto nexus = gateway_.target().nexuses().at(0);
  ASSERT_TRUE(nexus->drop);
  nexus->drop("a newer epoch was seen");
  gateway_.run();
  EXPECT_TRUE(host_.connection().ended());
  Initiator again(gateway_.connect());
  ASSERT_TRUE(again.login());
  const auto told = again.execute(kTestUnitReady, 0);
  EXPECT_EQ(told.asc, 0x29);
  EXPECT_EQ(told.ascq, 0x07);
}

TEST_F(Services, AnInitiatorThatHasNotAnsweredAnyPingIsNotDropped) {
  gateway_.advance(60 * kSecond);
  EXPECT_EQ(host_.answers().size(), 1u) << "one ping";
  EXPECT_EQ(host_.execute(kTestUnitReady, 0).status, 0);
}

TEST_F(Services, ARequestAfterTooLongASilenceIsNotExecuted) {
  gateway_.advance(limits::kNopSilence + limits::kTick);
  const auto ping = host_.answer();
  ASSERT_TRUE(ping);
  answer_ping(*ping);
  // The reactor stalls: no tick, then the clock has moved on.
  gateway_.shard().now += limits::kDiscardSilence;
  const auto h = host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0);
  host_.send(h);
  EXPECT_TRUE(host_.answers().empty());
  EXPECT_TRUE(host_.connection().ended());
}

TEST_F(Services, NegotiatesTextInFullFeaturePhase) {
  pdu::Bhs h = host_.request(Opcode::kTextRequest, true);
  h.put32(20, pdu::kReservedTag);
  const std::string text("MaxRecvDataSegmentLength=65536\0X-unknown=1\0", 43);
  host_.send(h, as_bytes(text));
  const auto a = host_.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.opcode(), Opcode::kTextResponse);
  EXPECT_EQ(a->header.itt(), h.itt());
  EXPECT_NE(std::string(a->data.begin(), a->data.end()).find("X-unknown=NotUnderstood"),
            std::string::npos);
}

TEST_F(Services, RefusesSnack) {
  host_.send(host_.request(Opcode::kSnackRequest, true));
  expect_reject(0x03);
  EXPECT_EQ(host_.execute(kTestUnitReady, 0).status, 0);
}

TEST_F(Services, RejectsUnknownOpcodesAndTargetOpcodes) {
  for (const uint8_t op : {0x07, 0x1c, 0x1f, 0x20, 0x25, 0x3f}) {
    for (const bool immediate : {true, false}) {
      host_.send(host_.request(static_cast<Opcode>(op), immediate));
      expect_reject(0x05);
    }
    // Vendors' PDUs may have anything where a CmdSN would stand.
    pdu::Bhs h = host_.request(static_cast<Opcode>(op), true);
    h.put8(0, op);
    h.put32(24, 0x77777777);
    host_.send(h);
    expect_reject(0x05);
  }
  EXPECT_EQ(host_.execute(kTestUnitReady, 0).status, 0);
}

TEST_F(Services, RejectsCommandsWithoutATag) {
  pdu::Bhs h = host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0);
  h.set_itt(pdu::kReservedTag);
  host_.send(h);
  expect_reject(0x09);
  EXPECT_EQ(host_.execute(kTestUnitReady, 0).status, 0);
}

TEST_F(Services, RejectsMalformedAdditionalHeaders) {
  for (const std::vector<uint8_t>& ahs :
       {std::vector<uint8_t>{0, 0, 1, 0}, {0, 9, 1, 0}, {0, 1, 7, 0}}) {
    host_.send(host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0), {}, ahs);
    expect_reject(0x09);
  }
  std::vector<uint8_t> huge(limits::kMaxAhsBytes);
  store_be16(huge.data(), limits::kMaxAhsBytes - 3);
  huge[2] = 1;
  host_.send(host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0), {}, huge);
  EXPECT_EQ(host_.answers().size(), 1u) << "an extended CDB of any length is taken";
  EXPECT_EQ(host_.execute(kTestUnitReady, 0).status, 0);
}

TEST_F(Services, RequestsLogoutOnce) {
  host_.connection().core().ask_logout(3);
  host_.connection().core().ask_logout(3);
  gateway_.run();
  const auto a = host_.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.opcode(), Opcode::kAsyncMessage);
  EXPECT_EQ(a->header.itt(), pdu::kReservedTag);
  EXPECT_EQ(a->header.u8(36), 1);
  EXPECT_EQ(a->header.u16(42), 3) << "Parameter3";
  EXPECT_EQ(host_.execute(kTestUnitReady, 0).status, 0) << "it may finish its work";
}

TEST_F(Services, ExpDataSnOfTheResponseCountsTheR2tsOfTheCommand) {
  const auto write = host_.command(write16(0, 1024), pdu::kFlagFinal | pdu::kFlagWrite | 1, 524288);
  host_.send(write);
  const std::vector<uint8_t> data(262144);
  uint32_t r2ts = 0;
  for (auto got = host_.answers(); !got.empty(); got = host_.answers()) {
    for (const Answer& a : got) {
      if (a.header.opcode() == Opcode::kScsiResponse) {
        EXPECT_EQ(a.header.u32(36), r2ts) << "ExpDataSN";
        EXPECT_GT(r2ts, 1u);
        return;
      }
      ASSERT_EQ(a.header.opcode(), Opcode::kR2t);
      ++r2ts;
      host_.send(
          host_.data_out(write.itt(), a.header.target_transfer_tag(), 0, a.header.u32(40), true),
          ByteView(data).first(a.header.u32(44)));
    }
  }
  FAIL() << "no response";
}

}  // namespace
}  // namespace sluice::simulation
