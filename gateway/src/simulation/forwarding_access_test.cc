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

TEST_F(ForwardingAccess, ALoginWithAWrongKeyIsRefused) {
  pair_.origin.gateway().forwarding.set_keys({{"key-1", "another key of the same length"}});
  const auto c = pair_.run(*nexus_, kTestUnitReady, 0);
  pair_.advance(2 * kSecond);
  EXPECT_TRUE(c->unavailable());
  EXPECT_TRUE(pair_.owner.target().nexuses().empty());
}

TEST_F(ForwardingAccess, AProbeReportsWhyThePeerRefusesTheLogin) {
  pair_.origin.gateway().forwarding.set_keys({{"key-1", "another key of the same length"}});
  pair_.reset_connections();
  pair_.advance(2 * kSecond);
  const forward::Peers::Finding refused = pair_.forwarder.peers().finding(GatewayPair::kOwner);
  EXPECT_EQ(refused.reach, forward::Reach::kConnected) << "its process answers";
  EXPECT_NE(refused.refusal, "");
  pair_.origin.gateway().forwarding.set_keys({{"key-1", "a forwarding key of some length"}});
  pair_.advance(2 * kSecond);
  EXPECT_EQ(pair_.forwarder.peers().finding(GatewayPair::kOwner),
            (forward::Peers::Finding{forward::Reach::kConnected, 0, ""}));
}

TEST_F(ForwardingAccess, AFencedGatewayIsRefusedAndLosesItsSessions) {
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

TEST_F(ForwardingAccess, AGatewayIsAdmittedAgainAfterTheFenceOfItsIncarnationIsLifted) {
  iscsi::ForwardingAccess& access = pair_.owner.gateway().forwarding;
  ASSERT_TRUE(access.fence(GatewayPair::kOrigin, "origin-a"));
  access.lift(GatewayPair::kOrigin, "another");
  EXPECT_TRUE(access.fenced(GatewayPair::kOrigin, "origin-a"));
  access.lift(GatewayPair::kOrigin, "origin-a");
  EXPECT_EQ(pair_.run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
}

TEST_F(ForwardingAccess, APortalForHostsRefusesGatewaysAndAForwardingPortRefusesHosts) {
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

class PairwiseKeys : public ForwardingAccess {
 protected:
  PairwiseKeys() {
    for (SimulatedGateway* g : {&pair_.owner, &pair_.origin}) g->gateway().forwarding.set_keys({});
    owner_accepts({kFirst});
    origin_has({kFirst});
  }
  void owner_accepts(std::vector<iscsi::ForwardingKey> keys,
                     const std::string& incarnation = "origin-a") {
    pair_.owner.gateway().forwarding.set_peers(
        {{GatewayPair::kOrigin, incarnation, std::move(keys), {}}, {9, "other", {kOther}, {}}});
    review();
  }
  void origin_has(std::vector<iscsi::ForwardingKey> keys) {
    pair_.origin.gateway().forwarding.set_peers(
        {{GatewayPair::kOwner, "owner-a", {}, std::move(keys)}});
  }
  void review() {
    for (const uint16_t number : pair_.owner.gateway().forwarding.take_revoked()) {
      pair_.owner.gateway().directory->review_gateway(number);
    }
    pair_.settle();
  }
  bool works(lun::Nexus& nexus) {
    const auto c = pair_.run(nexus, kTestUnitReady, 0);
    pair_.advance(2 * kSecond);
    return c->ended && c->command.status == scsi::Status::kGood;
  }
  bool refused(lun::Nexus& nexus) {
    const auto c = pair_.run(nexus, kTestUnitReady, 0);
    pair_.advance(2 * kSecond);
    return c->unavailable() && pair_.owner.target().nexuses().empty();
  }
  const iscsi::ForwardingKey kFirst{"1-origin-a-first", "a key of the pair, the first one"};
  const iscsi::ForwardingKey kSecond_{"1-origin-a-second", "a key of the pair, the second one"};
  const iscsi::ForwardingKey kOther{"9-other-first", "a key of another pair of gateways"};
};

TEST_F(PairwiseKeys, APeerIsAdmittedWithItsOwnKey) { EXPECT_TRUE(works(*nexus_)); }

TEST_F(PairwiseKeys, AnotherPeersKeyIsRefused) {
  origin_has({kOther});
  EXPECT_TRUE(refused(*nexus_));
}

TEST_F(PairwiseKeys, AGatewayThatIsNoPeerIsRefused) {
  pair_.owner.gateway().forwarding.set_peers({{9, "other", {kFirst}, {}}});
  review();
  EXPECT_TRUE(refused(*nexus_));
}

TEST_F(PairwiseKeys, AnotherIncarnationIsRefused) {
  owner_accepts({kFirst}, "origin-b");
  EXPECT_TRUE(refused(*nexus_));
}

TEST_F(PairwiseKeys, AKeyRotationTriesTheEarlierKeyAndEndsNoSession) {
  origin_has({kSecond_, kFirst});
  EXPECT_TRUE(works(*nexus_));
  owner_accepts({kSecond_, kFirst});
  const auto other = pair_.open_nexus(2);
  EXPECT_TRUE(works(*other));
  owner_accepts({kSecond_});
  const auto third = pair_.open_nexus(3);
  EXPECT_TRUE(works(*third));
  EXPECT_TRUE(works(*nexus_)) << "a rotation ends no session";
}

TEST_F(PairwiseKeys, SessionsOfAReplacedGatewayEndImmediately) {
  EXPECT_TRUE(works(*nexus_));
  owner_accepts({kFirst}, "origin-b");
  EXPECT_TRUE(pair_.owner.target().nexuses().empty());
  EXPECT_TRUE(refused(*nexus_));
}

TEST_F(PairwiseKeys, SessionsOfADeletedGatewayEnd) {
  EXPECT_TRUE(works(*nexus_));
  pair_.owner.gateway().forwarding.set_peers({});
  review();
  pair_.advance(limits::kEvictionLogout + kSecond);
  EXPECT_TRUE(pair_.owner.target().nexuses().empty());
  EXPECT_TRUE(refused(*nexus_));
}

TEST_F(PairwiseKeys, TheOwnerAdmitsOnlyItsHosts) {
  lun::HostAccess other;
  other.initiators = {"iqn.2026-11.dev.sluice.test:other"};
  pair_.owner.target().set_hosts({other});
  EXPECT_TRUE(refused(*nexus_)) << "whatever the origin says";
  lun::HostAccess far;
  far.initiators = {"iqn.2026-11.dev.sluice.test:far"};
  pair_.owner.target().set_hosts({other, far});
  EXPECT_TRUE(works(*nexus_)) << "the owner learns of the host later than the origin";
  pair_.owner.target().set_hosts({other});
  pair_.owner.gateway().directory->review_all(SimulatedGateway::kTarget);
  pair_.settle();
  pair_.advance(limits::kEvictionLogout + kSecond);
  EXPECT_TRUE(refused(*nexus_)) << "access was revoked";
}

TEST_F(PairwiseKeys, TheOwnerDecidesWhetherAHostMayWrite) {
  lun::HostAccess reader;
  reader.initiators = {"iqn.2026-11.dev.sluice.test:far"};
  reader.read_only = true;
  pair_.owner.target().set_hosts({reader});
  const std::vector<uint8_t> block(512);
  constexpr uint8_t kWrite[] = {0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0};
  const auto c = pair_.run(*nexus_, kWrite, 0, block);
  pair_.advance(2 * kSecond);
  EXPECT_EQ(c->sense_key(), 7) << "data protect, though the origin says that the host may write";
  EXPECT_EQ(c->asc(), 0x27);
}

}  // namespace
}  // namespace sluice::simulation
