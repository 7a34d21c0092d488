// What becomes of forwarded commands when their session is lost, their token is old, their owner
// fenced (DESIGN R6).
#include <gtest/gtest.h>

#include "simulation/gateway_pair.h"
#include "simulation/initiator.h"

namespace sluice::simulation {
namespace {

using Bytes = std::vector<uint8_t>;
using forward::Reach;

constexpr std::array<uint8_t, 6> kReserve6{0x16};

std::array<uint8_t, 16> compare_and_write() {
  std::array<uint8_t, 16> cdb{0x89};
  cdb[13] = 1;
  return cdb;
}

std::array<uint8_t, 10> unmap() {
  std::array<uint8_t, 10> cdb{0x42};
  cdb[8] = 24;
  return cdb;
}

// One descriptor: 8 blocks from 0.
Bytes unmap_list() {
  Bytes list(24, 0);
  list[1] = 22;
  list[3] = 16;
  list[19] = 8;
  return list;
}

class ForwardingLoss : public testing::Test {
 protected:
  void SetUp() override {
    nexus_ = pair_.open_nexus();
    link_ = pair_.link(nexus_);
  }
  // A command that waits in the owner's backend.
  std::shared_ptr<ForwardedCommand> in_flight(ByteView cdb, uint32_t data_in, ByteView out = {}) {
    pair_.owner.disk().hold(true);
    auto c = pair_.run(*nexus_, cdb, data_in, out);
    EXPECT_FALSE(c->ended);
    return c;
  }
  // A silent partition: the origin loses its connection and can't establish another.
  void cut() {
    pair_.network = GatewayPair::Network::kSilent;
    pair_.reset_connections(true);
    pair_.settle();
  }
  void fence() {
    forward::Peer peer = pair_.owner_peer();
    peer.fenced = true;
    pair_.set_owner(peer);
  }

  GatewayPair pair_;
  std::shared_ptr<lun::Nexus> nexus_;
  std::shared_ptr<lun::Link> link_;
};

TEST_F(ForwardingLoss, ANewLoginEndsInFlightCommandsAfterTheOldSessionIsDrained) {
  const auto w = in_flight(write16(0, 1), 0, Bytes(512, 1));
  pair_.reset_connections();
  pair_.settle();
  EXPECT_FALSE(w->ended) << "it still runs";
  pair_.advance(limits::kTick);
  EXPECT_FALSE(w->ended);
  pair_.owner.disk().release_all();
  pair_.advance(2 * limits::kTick);
  EXPECT_TRUE(w->ended);
  EXPECT_TRUE(w->unavailable());
}

TEST_F(ForwardingLoss, WithoutANewLoginACommandEndsWhenItsTokenExpires) {
  const auto w = in_flight(write16(0, 1), 0, Bytes(512, 1));
  cut();
  pair_.advance(limits::kTokenLife);
  EXPECT_FALSE(w->ended);
  pair_.advance(2 * limits::kTick);
  EXPECT_TRUE(w->unavailable());
}

TEST_F(ForwardingLoss, ACommandOfSeveralStepsEndsOnlyAfterTheOwnerHasDetectedTheLoss) {
  const auto u = in_flight(unmap(), 0, unmap_list());
  cut();
  pair_.advance(limits::kDiscardSilence + limits::kStallLimit);
  EXPECT_FALSE(u->ended);
  pair_.advance(kSecond);
  EXPECT_TRUE(u->unavailable());
}

TEST_F(ForwardingLoss, AFencedOwnerEndsInFlightCommandsImmediately) {
  const auto u = in_flight(unmap(), 0, unmap_list());
  cut();
  fence();
  EXPECT_TRUE(u->unavailable());
  EXPECT_TRUE(link_->ended());
}

TEST_F(ForwardingLoss, ACommandThatMustNotRunTwiceDropsItsNexusIfItsOutcomeIsUnknown) {
  const auto c = in_flight(compare_and_write(), 0, Bytes(1024, 0));
  cut();
  fence();
  ASSERT_TRUE(c->ended);
  EXPECT_EQ(c->command.outcome, lun::Outcome::kUnknown);
}

TEST_F(ForwardingLoss, AnUnsentCommandIsReportedAsUnavailableAndRetainsItsNexus) {
  pair_.network = GatewayPair::Network::kRefused;
  const auto c = pair_.run(*nexus_, kReserve6, 0);
  pair_.advance(2 * kSecond);
  EXPECT_TRUE(c->unavailable());
  EXPECT_NE(c->command.outcome, lun::Outcome::kUnknown);
}

TEST_F(ForwardingLoss, AnotherIncarnationOfTheOwnerDoesNotEndCommandsBeforeTheirTokenExpires) {
  const auto w = in_flight(write16(0, 1), 0, Bytes(512, 1));
  forward::Peer peer = pair_.owner_peer();
  peer.incarnation = "owner-b";
  pair_.owner.gateway().forwarding.set_identity({GatewayPair::kOwner, "owner-b"});
  pair_.set_owner(peer);
  EXPECT_TRUE(link_->ended());
  EXPECT_FALSE(w->ended);
  pair_.advance(limits::kTokenLife + 2 * limits::kTick);
  EXPECT_TRUE(w->unavailable());
}

// Its successor is a peer before any gateway reports the owner as dead, and the host continues: the
// next command gets a new link. Commands on the old link stay in doubt.
class ForwardingLossToASuccessor : public ForwardingLoss {
 protected:
  // The link is replaced; the owner said nothing before.
  void replace_link() {
    forward::Peer peer = pair_.owner_peer();
    peer.incarnation = "owner-b";
    pair_.owner.gateway().forwarding.set_identity({GatewayPair::kOwner, "owner-b"});
    pair_.set_owner(peer);
    next_ = pair_.run(*nexus_, kTestUnitReady, 0);
    EXPECT_NE(pair_.link(nexus_), link_);
  }
  // As long as a command of several steps waits for.
  void let_the_owner_notice() {
    pair_.advance(limits::kDiscardSilence + limits::kStallLimit + 4 * limits::kTick);
  }
  std::shared_ptr<ForwardedCommand> next_;
};

TEST_F(ForwardingLossToASuccessor, InFlightCommandsAreAnsweredAsUnavailableAfterTheirTimeLimits) {
  const auto w = in_flight(write16(0, 1), 0, Bytes(512, 1));
  const auto u = in_flight(unmap(), 0, unmap_list());
  replace_link();
  EXPECT_FALSE(w->ended);
  pair_.advance(limits::kTokenLife + 2 * limits::kTick);
  EXPECT_TRUE(w->unavailable());
  EXPECT_FALSE(w->command.aborted());
  EXPECT_FALSE(u->ended);
  let_the_owner_notice();
  EXPECT_TRUE(u->unavailable());
  EXPECT_FALSE(u->command.aborted());
}

TEST_F(ForwardingLossToASuccessor, ACommandThatMustNotRunTwiceDropsItsNexusAfterItsTokenExpires) {
  const auto c = in_flight(compare_and_write(), 0, Bytes(1024, 0));
  replace_link();
  EXPECT_FALSE(c->ended);
  pair_.advance(limits::kTokenLife + 2 * limits::kTick);
  ASSERT_TRUE(c->ended);
  EXPECT_EQ(c->command.outcome, lun::Outcome::kUnknown);
  EXPECT_FALSE(c->command.aborted());
}

TEST_F(ForwardingLossToASuccessor, ACommandAbortedBeforeTheLossEndsAsAborted) {
  const auto w = in_flight(write16(0, 1), 0, Bytes(512, 1));
  nexus_->abort(w->command);
  replace_link();
  pair_.advance(limits::kTokenLife + 2 * limits::kTick);
  ASSERT_TRUE(w->ended);
  EXPECT_TRUE(w->command.aborted());
}

TEST_F(ForwardingLossToASuccessor,
       APendingResetIsExecutedByTheSuccessorAfterTheOwnerDetectedTheLoss) {
  const auto w = in_flight(write16(0, 1), 0, Bytes(512, 1));
  unsigned answers = 0;
  ASSERT_TRUE(nexus_->logical_unit_reset(0, [&](bool at_owner) { answers += at_owner ? 1 : 100; }));
  pair_.settle();
  replace_link();
  pair_.advance(limits::kTokenLife + 2 * limits::kTick);
  EXPECT_TRUE(w->ended);
  EXPECT_EQ(answers, 0u) << "an earlier command may still take another step";
  let_the_owner_notice();
  pair_.advance(limits::kAbortBound);
  EXPECT_EQ(answers, 1u) << "the successor has done it, although its backend is busy";
  EXPECT_EQ(pair_.owner.disk().waiting(), 1u);
}

TEST_F(ForwardingLossToASuccessor, AReplacedLinkIsDestroyedAfterItsLastAnswer) {
  const auto w = in_flight(write16(0, 1), 0, Bytes(512, 1));
  ASSERT_TRUE(nexus_->logical_unit_reset(0, [](bool) {}));
  replace_link();
  const std::weak_ptr<lun::Link> old = link_;
  link_.reset();
  EXPECT_FALSE(old.expired());
  let_the_owner_notice();
  EXPECT_TRUE(w->ended);
  EXPECT_TRUE(old.expired());
}

TEST_F(ForwardingLoss, ALinkReopensItsSessionAndReportsNexusLoss) {
  EXPECT_EQ(pair_.run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
  pair_.reset_connections();
  pair_.settle();
  const auto again = pair_.run(*nexus_, kTestUnitReady, 0);
  pair_.advance(limits::kRedial + limits::kTick);
  ASSERT_TRUE(again->ended);
  EXPECT_EQ(again->asc(), 0x29) << "the owner's nexus was lost";
  EXPECT_EQ(again->ascq(), 0x07);
}

TEST_F(ForwardingLoss, CloseWaitsForCommandsThatMayStillRun) {
  const auto w = in_flight(write16(0, 1), 0, Bytes(512, 1));
  cut();
  bool done = false;
  link_->close(true, [&] { done = true; });
  pair_.settle();
  EXPECT_FALSE(done);
  pair_.advance(limits::kTokenLife + 2 * limits::kTick);
  EXPECT_TRUE(w->ended);
  EXPECT_TRUE(done);
}

TEST_F(ForwardingLoss, ATaskManagementFunctionIsRepeatedOnTheNextSession) {
  const auto w = in_flight(write16(0, 1), 0, Bytes(512, 1));
  int answers = 0;
  link_->function(lun::LinkFunction::kLogicalUnitReset, 0,
                  [&](bool answered) { answers += answered ? 1 : 100; });
  pair_.settle();
  pair_.reset_connections();
  pair_.owner.disk().release_all();
  pair_.advance(limits::kRedial + 2 * limits::kTick);
  EXPECT_EQ(answers, 1);
  EXPECT_TRUE(w->ended);
}

TEST_F(ForwardingLoss, ATaskManagementFunctionEndsUnansweredWhenTheOwnerIsFenced) {
  const auto w = in_flight(write16(0, 1), 0, Bytes(512, 1));
  int unanswered = 0;
  link_->function(lun::LinkFunction::kAbortTaskSet, 0,
                  [&](bool answered) { unanswered += answered ? 0 : 1; });
  cut();
  EXPECT_EQ(unanswered, 0);
  fence();
  EXPECT_EQ(unanswered, 1);
  EXPECT_TRUE(w->ended);
}

// R6: the owner's clock has moved on since it gave the token out, and nothing was heard since.
TEST_F(ForwardingLoss, AnExpiredTokenIsRefusedAndTheCommandRunsOnlyWithANewToken) {
  EXPECT_EQ(pair_.run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
  pair_.owner.shard().now += limits::kTokenLife + 1;
  const auto w = pair_.run(*nexus_, write16(0, 1), 0, Bytes(512, 0xee));
  EXPECT_FALSE(w->ended);
  Initiator direct(pair_.owner.connect());
  ASSERT_TRUE(direct.login());
  direct.clear_attention();
  EXPECT_EQ(direct.execute(read16(0, 1), 512).data, Bytes(512, 0));
  pair_.advance(2 * limits::kTick);
  EXPECT_EQ(w->command.status, scsi::Status::kGood) << "with a new token";
  EXPECT_EQ(direct.execute(read16(0, 1), 512).data, Bytes(512, 0xee));
}

TEST_F(ForwardingLoss, AStaleCommandIsNotSent) {
  EXPECT_EQ(pair_.run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
  const uint64_t sent = pair_.sent();
  auto w = pair_.command(write16(0, 1), 0, Bytes(512, 0xee));
  w->command.fresh_until = pair_.origin.shard().now - 1;
  pair_.begin(*nexus_, *w);
  pair_.settle();
  EXPECT_TRUE(w->ended);
  EXPECT_EQ(w->command.outcome, lun::Outcome::kStale);
  EXPECT_EQ(pair_.sent(), sent);
}

// What the origin may still have sent is over when kOwnerNotices (forward/link.cc) says so.
TEST_F(ForwardingLoss, TheOwnerEndsASilentSession) {
  EXPECT_EQ(pair_.run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
  pair_.network = GatewayPair::Network::kSilent;
  pair_.advance(limits::kDiscardSilence + 2 * limits::kTick);
  EXPECT_TRUE(pair_.owner.target().nexuses().empty());
}

TEST_F(ForwardingLoss, AnIdleLinkStaysOpen) {
  EXPECT_EQ(pair_.run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
  pair_.advance(100 * kSecond);
  EXPECT_EQ(pair_.run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
  EXPECT_EQ(pair_.dialled(), 2u) << "the link's and the probe's";
}

TEST_F(ForwardingLoss, OnALogoutRequestTheLinkCompletesItsCommandsAndReconnects) {
  const auto w = in_flight(write16(0, 1), 0, Bytes(512, 1));
  ASSERT_NE(pair_.far_end(), nullptr);
  pair_.far_end()->core().ask_logout(3);
  pair_.settle();
  const auto waits = pair_.run(*nexus_, kTestUnitReady, 0);
  EXPECT_FALSE(waits->ended);
  pair_.owner.disk().hold(false);
  pair_.owner.disk().release_all();
  pair_.settle();
  EXPECT_EQ(w->command.status, scsi::Status::kGood);
  pair_.advance(limits::kRedial + limits::kTick);
  EXPECT_EQ(waits->command.status, scsi::Status::kGood);
}

TEST_F(ForwardingLoss, CommandsAreForwardedAgainAfterTheOwnersFenceIsLifted) {
  fence();
  EXPECT_TRUE(pair_.run(*nexus_, kTestUnitReady, 0)->unavailable());
  pair_.set_owner(pair_.owner_peer());
  EXPECT_EQ(pair_.run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
}

TEST_F(ForwardingLoss, AProbeReportsWhetherThePeerIsReachable) {
  std::vector<Reach> told;
  pair_.forwarder.peers().set_on_reach(
      [&](uint16_t number, const std::string& incarnation, const forward::Peers::Finding& found) {
        EXPECT_EQ(number, GatewayPair::kOwner);
        EXPECT_EQ(incarnation, "owner-a");
        EXPECT_EQ(found.silent_ms != 0, found.reach == Reach::kSilent);
        EXPECT_EQ(found.refusal, "");
        if (told.empty() || told.back() != found.reach) told.push_back(found.reach);
      });
  pair_.advance(kSecond);
  EXPECT_EQ(told, (std::vector{Reach::kConnected}));
  pair_.network = GatewayPair::Network::kRefused;
  pair_.reset_connections();
  pair_.settle();
  EXPECT_EQ(told, (std::vector{Reach::kConnected, Reach::kRefused})) << "at once";
  pair_.network = GatewayPair::Network::kWhole;
  pair_.advance(kSecond);
  pair_.network = GatewayPair::Network::kSilent;
  pair_.advance(limits::kPeerSilence - kSecond);
  EXPECT_EQ(told.back(), Reach::kConnected);
  pair_.advance(2 * kSecond);
  EXPECT_EQ(told.back(), Reach::kSilent);
  EXPECT_EQ(pair_.forwarder.peers().finding(GatewayPair::kOwner).silent_ms % 1000, 0u);
  pair_.forwarder.peers().set_on_reach({});  // the pair outlives what it tells
}

}  // namespace
}  // namespace sluice::simulation
