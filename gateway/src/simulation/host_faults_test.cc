// What hosts meet is recorded for the control plane, with the initiator, the target and the cause.
#include <gtest/gtest.h>

#include "simulation/initiator.h"

namespace sluice::simulation {
namespace {

using iscsi::HostFault;
using iscsi::HostFaultKind;

class HostFaults : public testing::Test {
 protected:
  std::vector<HostFault> faults() { return gateway_.gateway().host_faults.take_report().faults; }
  HostFault only() {
    const std::vector<HostFault> all = faults();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? HostFault() : all[0];
  }

  SimulatedGateway gateway_;
  Initiator host_{gateway_.connect()};
};

TEST_F(HostFaults, AHealthySessionHasNone) {
  ASSERT_TRUE(host_.login());
  host_.clear_attention();
  EXPECT_TRUE(faults().empty());
}

TEST_F(HostFaults, ALoginToAnUnknownTargetIsRecordedWithItsStatus) {
  ASSERT_TRUE(host_.login({}, "iqn.2026-11.dev.sluice:nowhere"));
  const HostFault fault = only();
  EXPECT_EQ(fault.kind, HostFaultKind::kLoginRefused);
  EXPECT_EQ(fault.initiator, Initiator::kName);
  EXPECT_EQ(fault.target, "iqn.2026-11.dev.sluice:nowhere");
  EXPECT_TRUE(fault.reason.starts_with("status 0203: ")) << fault.reason;
}

TEST_F(HostFaults, ALoginOfAHostWithoutAccessIsRecorded) {
  lun::HostAccess access;
  access.initiators = {"iqn.2026-11.dev.sluice.test:other"};
  gateway_.target().set_hosts({access});
  ASSERT_TRUE(host_.login());
  const HostFault fault = only();
  EXPECT_EQ(fault.kind, HostFaultKind::kLoginRefused);
  EXPECT_TRUE(fault.reason.starts_with("status 0203: ")) << fault.reason;
}

TEST_F(HostFaults, ARedirectionIsNone) {
  lun::HostAccess access;
  access.portals = {"192.0.2.1:3260,2"};
  access.redirect = true;
  gateway_.target().set_hosts({access});
  const auto a = host_.login();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.u16(36), 0x0101);
  EXPECT_TRUE(faults().empty());
}

TEST_F(HostFaults, ALoginBeyondTheSessionLimitIsRecorded) {
  gateway_.gateway().directory->limit_sessions(1);
  ASSERT_TRUE(host_.login());
  Initiator other(gateway_.connect());
  other.name = "iqn.2026-11.dev.sluice.test:other";
  ASSERT_TRUE(other.login());
  const HostFault fault = only();
  EXPECT_EQ(fault.initiator, other.name);
  EXPECT_TRUE(fault.reason.starts_with("status 0302: ")) << fault.reason;
}

TEST_F(HostFaults, DamagedHeadersAndDataAreRecorded) {
  ASSERT_TRUE(host_.login({"HeaderDigest=CRC32C", "DataDigest=CRC32C"}));
  host_.set_digests(true, true);
  host_.clear_attention();
  const std::vector<uint8_t> data(512, 7);
  const std::vector<uint8_t> write = {0x8a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0};
  const auto h = host_.command(write, pdu::kFlagFinal | pdu::kFlagWrite | 1, 512);
  auto bytes = host_.frame(h, data);
  bytes[60] ^= 1;
  host_.connection().send(bytes);
  HostFault fault = only();
  EXPECT_EQ(fault.kind, HostFaultKind::kDigestError);
  EXPECT_EQ(fault.initiator, Initiator::kName);
  EXPECT_EQ(fault.target, SimulatedGateway::kTarget);
  EXPECT_EQ(fault.reason, "the data digest of a PDU is wrong");
  bytes = host_.frame(h, data);
  bytes[20] ^= 1;
  host_.connection().send(bytes);
  fault = only();
  EXPECT_EQ(fault.kind, HostFaultKind::kDigestError);
  EXPECT_TRUE(fault.reason.starts_with("the header digest ")) << fault.reason;
}

TEST_F(HostFaults, AHostThatStopsAnsweringPingsIsRecorded) {
  ASSERT_TRUE(host_.login());
  host_.clear_attention();
  host_.answers();
  // One ping is answered, so the gateway expects an answer to each further one.
  std::optional<pdu::Bhs> ping;
  for (int i = 0; i < 100 && !ping; ++i) {
    gateway_.advance(limits::kTick);
    for (const Answer& a : host_.answers()) {
      if (a.header.opcode() == pdu::Opcode::kNopIn) ping = a.header;
    }
  }
  ASSERT_TRUE(ping);
  pdu::Bhs pong = host_.request(pdu::Opcode::kNopOut, true);
  pong.set_itt(pdu::kReservedTag);
  pong.set_flags(pdu::kFlagFinal);
  pong.put32(20, ping->target_transfer_tag());
  host_.send(pong);
  EXPECT_TRUE(faults().empty());
  gateway_.advance(limits::kNopSilence + limits::kNopTimeout + 4 * limits::kTick);
  const HostFault fault = only();
  EXPECT_EQ(fault.kind, HostFaultKind::kPingLost);
  EXPECT_EQ(fault.initiator, Initiator::kName);
  EXPECT_EQ(fault.target, SimulatedGateway::kTarget);
}

}  // namespace
}  // namespace sluice::simulation
