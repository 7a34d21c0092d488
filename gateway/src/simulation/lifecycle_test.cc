// Sessions from login to their end: reinstatement, TSIH, logout, loss, limits of time
// (RFC 7143 §6.3, §7.4, §11.12-11.15).
#include <gtest/gtest.h>

#include "simulation/initiator.h"

namespace sluice::simulation {
namespace {

using pdu::Opcode;

class Lifecycle : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(host_.login());
    host_.clear_attention();
  }
  void hold_a_read() {
    gateway_.disk().hold(true);
    host_.send(host_.command(read16(0, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512));
  }
  void release() {
    gateway_.disk().hold(false);
    gateway_.disk().release_all();
    gateway_.run();
  }
  // An answer waits to be sent, and another read is in the backend.
  void fill_output() {
    gateway_.disk().hold(true);
    host_.connection().set_reading(false);
    for (const uint32_t blocks : {1024u, 1u}) {
      host_.send(
          host_.command(read16(0, blocks), pdu::kFlagFinal | pdu::kFlagRead | 1, blocks * 512));
    }
    ASSERT_TRUE(gateway_.disk().release_one());
    gateway_.run();
    ASSERT_GE(host_.connection().core().outbox().bytes(), 1024u * 512);
    ASSERT_GE(gateway_.buffers().in_use(), 1024u * 512);
  }
  static uint16_t status(const std::optional<Answer>& login) {
    return login ? login->header.u16(36) : uint16_t{0xffff};
  }
  Answer logout(uint8_t reason, uint16_t cid = 0) {
    pdu::Bhs h = host_.request(Opcode::kLogoutRequest, true);
    h.set_flags(static_cast<uint8_t>(pdu::kFlagFinal | reason));
    h.put16(20, cid);
    host_.send(h);
    auto a = host_.answer();
    EXPECT_TRUE(a);
    return a ? *a : Answer{};
  }
  SimulatedGateway gateway_;
  Initiator host_{gateway_.connect()};
};

TEST_F(Lifecycle, ReinstatementWaitsForTheCommandsInFlight) {
  hold_a_read();
  Initiator again(gateway_.connect());
  EXPECT_FALSE(again.login()) << "R5: the old session's read is in the backend";
  EXPECT_TRUE(host_.connection().closed());
  EXPECT_FALSE(host_.connection().ended());
  release();
  EXPECT_TRUE(host_.connection().ended());
  const auto a = again.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.opcode(), Opcode::kLoginResponse);
  EXPECT_EQ(status(a), 0);
  EXPECT_NE(a->header.u16(14), 0) << "TSIH";
  EXPECT_EQ(again.execute(kTestUnitReady, 0).asc, 0x29) << "nexus loss is reported";
}

// Otherwise hosts that reconnect while a pool hangs would block all other logins.
TEST_F(Lifecycle, AConnectionThatWaitsForTheOldSessionIsNotCountedAsInLogin) {
  hold_a_read();
  Initiator again(gateway_.connect());
  EXPECT_TRUE(again.connection().in_login());
  EXPECT_FALSE(again.login());
  EXPECT_FALSE(again.connection().in_login());
  EXPECT_FALSE(again.connection().closed());
  Initiator wrong(gateway_.connect());
  wrong.isid[5] = 2;
  EXPECT_NE(status(wrong.login({}, "iqn.2026-11.dev.sluice:nowhere")), 0);
  EXPECT_TRUE(wrong.connection().in_login()) << "it has proven nothing";
}

TEST_F(Lifecycle, AnotherIsidOrPortalGroupIsAnotherNexus) {
  Initiator second(gateway_.connect());
  second.isid[5] = 2;
  EXPECT_EQ(status(second.login()), 0);
  Initiator third(gateway_.connect(0, 2));
  EXPECT_EQ(status(third.login()), 0);
  EXPECT_FALSE(host_.connection().closed());
  EXPECT_FALSE(second.connection().closed());
  EXPECT_EQ(host_.execute(kTestUnitReady, 0).status, 0);
}

TEST_F(Lifecycle, ATsihThatDoesNotMatchASessionIsRefused) {
  Initiator wrong(gateway_.connect());
  EXPECT_EQ(
      status(wrong.login({}, SimulatedGateway::kTarget, static_cast<uint16_t>(host_.tsih + 1))),
      0x020a);
  EXPECT_TRUE(wrong.connection().closed());
  Initiator other_port(gateway_.connect());
  other_port.isid[5] = 2;
  EXPECT_EQ(status(other_port.login({}, SimulatedGateway::kTarget, host_.tsih)), 0x020a);
  Initiator discovery(gateway_.connect());
  EXPECT_EQ(status(discovery.login({}, "", host_.tsih)), 0x020a);
  EXPECT_EQ(host_.execute(kTestUnitReady, 0).status, 0) << "the session is untouched";
}

TEST_F(Lifecycle, AMatchingTsihReplacesTheConnectionAndRetainsTheTsih) {
  Initiator again(gateway_.connect());
  EXPECT_EQ(status(again.login({}, SimulatedGateway::kTarget, host_.tsih)), 0);
  EXPECT_EQ(again.tsih, host_.tsih);
  EXPECT_TRUE(host_.connection().closed());
}

TEST_F(Lifecycle, ASecondConnectionIsRefused) {
  Initiator second(gateway_.connect());
  second.cid = 1;
  EXPECT_EQ(status(second.login({}, SimulatedGateway::kTarget, host_.tsih)), 0x0206);
  EXPECT_FALSE(host_.connection().closed());
}

TEST_F(Lifecycle, LogoutClosesTheSessionAfterItsCommandsHaveEnded) {
  hold_a_read();
  pdu::Bhs h = host_.request(Opcode::kLogoutRequest, true);
  host_.send(h);
  EXPECT_TRUE(host_.answers().empty()) << "R5";
  release();
  const auto a = host_.answer();
  ASSERT_TRUE(a) << "and the read is not answered";
  EXPECT_EQ(a->header.opcode(), Opcode::kLogoutResponse);
  EXPECT_EQ(a->header.u8(2), 0);
  EXPECT_TRUE(host_.connection().closed());
  EXPECT_TRUE(host_.connection().ended());
  EXPECT_EQ(gateway_.buffers().in_use(), 0u);
}

TEST_F(Lifecycle, LogoutOfTheConnectionEndsTheSession) {
  EXPECT_EQ(logout(1).header.u8(2), 0);
  EXPECT_TRUE(host_.connection().ended());
}

TEST_F(Lifecycle, AnUnsupportedLogoutIsRefusedAndTheSessionContinues) {
  EXPECT_EQ(logout(1, 7).header.u8(2), 1) << "CID not found";
  EXPECT_EQ(logout(2).header.u8(2), 2) << "recovery is not supported";
  EXPECT_EQ(logout(3).header.opcode(), Opcode::kReject);
  EXPECT_FALSE(host_.connection().closed());
  EXPECT_EQ(host_.execute(kTestUnitReady, 0).status, 0);
}

TEST_F(Lifecycle, ALostConnectionEndsAfterTheBackendCompletes) {
  hold_a_read();
  host_.send(host_.command(write16(0, 8), pdu::kFlagFinal | pdu::kFlagWrite | 1, 4096));
  host_.connection().hang_up();
  EXPECT_FALSE(host_.connection().ended());
  release();
  EXPECT_TRUE(host_.connection().ended());
  EXPECT_EQ(gateway_.buffers().in_use(), 0u);
}

TEST_F(Lifecycle, ALostConnectionRetainsNoOutputWhileTheBackendHangs) {
  fill_output();
  host_.connection().hang_up();
  EXPECT_FALSE(host_.connection().ended());
  EXPECT_LE(gateway_.buffers().in_use(), 4096u) << "what the backend holds";
  release();
  EXPECT_TRUE(host_.connection().ended());
  EXPECT_EQ(gateway_.buffers().in_use(), 0u);
}

TEST_F(Lifecycle, AReinstatedConnectionRetainsNoOutputWhileTheBackendHangs) {
  fill_output();
  Initiator again(gateway_.connect());
  EXPECT_FALSE(again.login());
  EXPECT_FALSE(host_.connection().ended());
  EXPECT_LE(gateway_.buffers().in_use(), 4096u) << "what the backend holds";
  release();
  EXPECT_EQ(status(again.answer()), 0);
  EXPECT_EQ(host_.connection().core().outbox().bytes(), 0u) << "nor what was answered since";
}

TEST_F(Lifecycle, AConnectionLostDuringLogoutEndsAfterTheBackendCompletes) {
  hold_a_read();
  host_.send(host_.request(Opcode::kLogoutRequest, true));
  host_.connection().hang_up();
  release();
  EXPECT_TRUE(host_.connection().ended());
}

TEST_F(Lifecycle, OfTwoConcurrentLoginsTheLastSucceeds) {
  hold_a_read();
  Initiator second(gateway_.connect());
  Initiator third(gateway_.connect());
  EXPECT_FALSE(second.login());
  EXPECT_FALSE(third.login());
  release();
  EXPECT_TRUE(second.connection().closed());
  const auto a = third.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(status(a), 0);
  EXPECT_NE(third.execute(kTestUnitReady, 0).status, 0xff) << "it is answered";
}

TEST_F(Lifecycle, APendingLoginThatDisconnectsDoesNotBlockALaterOne) {
  hold_a_read();
  Initiator second(gateway_.connect());
  Initiator third(gateway_.connect());
  EXPECT_FALSE(second.login());
  EXPECT_FALSE(third.login());
  second.connection().hang_up();
  release();
  EXPECT_EQ(status(third.answer()), 0);
}

TEST_F(Lifecycle, DataBeforeTheLoginResponseEndsTheConnection) {
  hold_a_read();
  Initiator again(gateway_.connect());
  EXPECT_FALSE(again.login());
  again.send(again.request(Opcode::kNopOut, true));
  EXPECT_TRUE(again.connection().closed());
  release();
  EXPECT_TRUE(again.connection().ended());
}

TEST_F(Lifecycle, ADiscoverySessionAcceptsTextAndLogoutOnly) {
  Initiator discovery(gateway_.connect());
  ASSERT_EQ(status(discovery.login({}, "")), 0);
  for (const Opcode op : {Opcode::kScsiCommand, Opcode::kTaskManagementRequest, Opcode::kNopOut}) {
    discovery.send(discovery.request(op, false));
    const auto a = discovery.answer();
    ASSERT_TRUE(a);
    EXPECT_EQ(a->header.opcode(), Opcode::kReject);
    EXPECT_EQ(a->header.u8(2), 0x04);
  }
  gateway_.advance(5 * kSecond);
  EXPECT_TRUE(discovery.answers().empty()) << "no pings there";
  pdu::Bhs ask = discovery.request(Opcode::kTextRequest, false);
  ask.put32(20, pdu::kReservedTag);
  const std::string all("SendTargets=All\0", 16);
  discovery.send(ask, as_bytes(all));
  const auto text = discovery.answer();
  ASSERT_TRUE(text);
  EXPECT_EQ(text->header.opcode(), Opcode::kTextResponse);
  EXPECT_NE(std::string(text->data.begin(), text->data.end()).find(SimulatedGateway::kTarget),
            std::string::npos);
  discovery.send(discovery.request(Opcode::kLogoutRequest, true));
  EXPECT_TRUE(discovery.answer());
  EXPECT_TRUE(discovery.connection().ended());
}

TEST_F(Lifecycle, AnIdleDiscoverySessionIsClosed) {
  Initiator discovery(gateway_.connect());
  ASSERT_EQ(status(discovery.login({}, "")), 0);
  gateway_.advance(limits::kDiscoverySilence - kSecond);
  EXPECT_FALSE(discovery.connection().closed());
  gateway_.advance(2 * kSecond);
  EXPECT_TRUE(discovery.connection().ended());
}

TEST_F(Lifecycle, IncompleteLoginsAreClosedAfterTheLoginTimeout) {
  Initiator silent(gateway_.connect());
  Initiator slow(gateway_.connect());
  pdu::Bhs h = slow.request(Opcode::kLoginRequest, true);
  const auto bytes = slow.frame(h);
  gateway_.advance(limits::kLoginTimeout - kSecond);
  slow.connection().send(ByteView(bytes).first(20));
  EXPECT_FALSE(silent.connection().closed());
  gateway_.advance(2 * kSecond);
  EXPECT_TRUE(silent.connection().ended());
  EXPECT_TRUE(slow.connection().ended()) << "slow-loris";
}

TEST_F(Lifecycle, AConnectionThatDoesNotBeginWithALoginIsRefused) {
  for (const Opcode op : {Opcode::kNopOut, Opcode::kScsiCommand, static_cast<Opcode>(0x1c)}) {
    Initiator rude(gateway_.connect());
    rude.send(rude.request(op, true));
    EXPECT_TRUE(rude.connection().closed());
    EXPECT_EQ(status(rude.answer()), 0x020b);
    EXPECT_TRUE(rude.connection().ended());
  }
}

TEST_F(Lifecycle, ALoginInFullFeaturePhaseEndsTheConnection) {
  host_.send(host_.request(Opcode::kLoginRequest, true));
  EXPECT_TRUE(host_.connection().ended());
}

}  // namespace
}  // namespace sluice::simulation
