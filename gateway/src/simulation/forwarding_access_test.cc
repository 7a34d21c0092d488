// Who gets in at a forwarding port, and who no longer does (iscsi/login/forwarding_access.h).
#include <gtest/gtest.h>

#include "simulation/gateway_pair.h"
#include "simulation/initiator.h"

namespace sluice::simulation {
namespace {

class ForwardingAccess : public testing::Test {
 protected:
  GatewayPair pair_;
  std::shared_ptr<lun::Nexus> nexus_ = pair_.open_nexus();
};

TEST_F(ForwardingAccess, ALoginOfAnEarlierNexusIsRefused) {
  EXPECT_EQ(pair_.run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
  const auto later = pair_.open_nexus();
  EXPECT_EQ(pair_.run(*later, kTestUnitReady, 0)->asc(), 0x29) << "it took the nexus over";
  EXPECT_EQ(pair_.run(*later, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
  const auto earlier = pair_.run(*nexus_, kTestUnitReady, 0);
  pair_.advance(2 * kSecond);
  EXPECT_TRUE(earlier->unavailable());
  EXPECT_EQ(pair_.run(*later, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
}

TEST_F(ForwardingAccess, KeysAreChangedOneGatewayAtATime) {
  pair_.owner.gateway().forwarding.set_keys(
      {{"key-2", "the key that is coming in now"}, {"key-1", "a forwarding key of some length"}});
  EXPECT_EQ(pair_.run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
  pair_.origin.gateway().forwarding.set_keys({{"key-2", "the key that is coming in now"}});
  const auto other = pair_.open_nexus(2);
  EXPECT_EQ(pair_.run(*other, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
}

TEST_F(ForwardingAccess, AWrongKeyGetsNobodyIn) {
  pair_.origin.gateway().forwarding.set_keys({{"key-1", "another key of the same length"}});
  const auto c = pair_.run(*nexus_, kTestUnitReady, 0);
  pair_.advance(2 * kSecond);
  EXPECT_TRUE(c->unavailable());
  EXPECT_TRUE(pair_.owner.target().nexuses().empty());
}

TEST_F(ForwardingAccess, WhoIsFencedIsNotLetInAndLosesItsSessions) {
  EXPECT_EQ(pair_.run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
  iscsi::Gateway& owner = pair_.owner.gateway();
  ASSERT_TRUE(owner.forwarding.fence(GatewayPair::kOrigin, "origin-a"));
  owner.directory->review_gateway(GatewayPair::kOrigin);
  pair_.settle();
  EXPECT_TRUE(pair_.owner.target().nexuses().empty());
  const auto c = pair_.run(*nexus_, kTestUnitReady, 0);
  pair_.advance(2 * kSecond);
  EXPECT_TRUE(c->unavailable());
}

TEST_F(ForwardingAccess, WhoWasOnlyCutOffIsLetInAgainWhenTheControlPlaneSaysSo) {
  iscsi::ForwardingAccess& access = pair_.owner.gateway().forwarding;
  ASSERT_TRUE(access.fence(GatewayPair::kOrigin, "origin-a"));
  access.lift(GatewayPair::kOrigin, "another");
  EXPECT_TRUE(access.fenced(GatewayPair::kOrigin, "origin-a"));
  access.lift(GatewayPair::kOrigin, "origin-a");
  EXPECT_EQ(pair_.run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
}

TEST_F(ForwardingAccess, APortalForHostsRefusesGatewaysAndTheOtherHosts) {
  const std::string origin = "X-dev.sluice.Origin=1,1,a,1,1,1,rw,2,owner-a";
  Initiator lost(pair_.owner.connect());
  EXPECT_EQ(lost.login({origin})->header.u16(36), 0x0200);
  Initiator host(pair_.owner.connect_gateway());
  EXPECT_EQ(host.login()->header.u16(36), 0x0207);
  Initiator curious(pair_.owner.connect_gateway());
  EXPECT_EQ(curious.login({}, "")->header.u16(36), 0x0207);
  Initiator misled(pair_.owner.connect_gateway());
  EXPECT_EQ(misled.login({"X-dev.sluice.Origin=1,1,a,1,1,1,rw,2,owner-x"})->header.u16(36), 0x0204);
  Initiator unproven(pair_.owner.connect_gateway());
  EXPECT_EQ(unproven.login({origin})->header.u16(36), 0x0201);
}

}  // namespace
}  // namespace sluice::simulation
