// LOGICAL UNIT RESET on its way to the owner, and its answer if there is none (DESIGN R9;
// nexus/owner_resets.h).
#include <gtest/gtest.h>

#include "simulation/gateway_pair.h"
#include "simulation/task_management_fixture.h"
#include "unit/unit.h"

namespace sluice::simulation {
namespace {

void set_standing(SimulatedGateway& gateway, lun::Standing standing, uint64_t epoch,
                  uint16_t owner) {
  const std::lock_guard lock(gateway.unit()->mutex());
  gateway.unit()->set_role_locked({standing, epoch, owner});
}

class ForwardedResets : public testing::Test {
 protected:
  void SetUp() override {
    nexus_ = pair_.open_nexus();
    link_ = pair_.link(nexus_);
  }
  void at_the_owner(lun::Standing standing) {
    set_standing(pair_.owner, standing, 1, GatewayPair::kOwner);
  }
  // 1: carried out; 0: not.
  std::shared_ptr<int> ask_link() {
    auto result = std::make_shared<int>(-1);
    link_->function(lun::LinkFunction::kLogicalUnitReset, 0,
                    [result](bool carried_out) { *result = carried_out; });
    pair_.settle();
    return result;
  }
  std::shared_ptr<int> reset() {
    auto result = std::make_shared<int>(-1);
    EXPECT_TRUE(nexus_->logical_unit_reset(0, [result](bool at_owner) { *result = at_owner; }));
    pair_.settle();
    return result;
  }
  uint64_t resets_at_owner() {
    const auto slot = static_cast<size_t>(pdu::TaskFunction::kLogicalUnitReset);
    return pair_.owner.shard().counters->task_functions[slot];
  }

  GatewayPair pair_;
  std::shared_ptr<lun::Nexus> nexus_;
  std::shared_ptr<lun::Link> link_;
};

TEST_F(ForwardedResets, AGatewayThatIsNotTheOwnerReportsAResetAsNotDone) {
  for (const lun::Standing standing :
       {lun::Standing::kTransitioning, lun::Standing::kForwarder, lun::Standing::kUnavailable}) {
    at_the_owner(standing);
    EXPECT_EQ(*ask_link(), 0);
  }
  at_the_owner(lun::Standing::kOwner);
  EXPECT_EQ(*ask_link(), 1);
}

TEST_F(ForwardedResets, AResetDuringATakeoverIsExecutedByTheNewOwner) {
  Initiator other(pair_.owner.connect());
  ASSERT_TRUE(other.login());
  other.clear_attention();
  at_the_owner(lun::Standing::kTransitioning);
  other.clear_attention();
  const auto result = reset();
  pair_.advance(kSecond);
  EXPECT_EQ(*result, -1);
  EXPECT_EQ(other.execute(kTestUnitReady, 0).asc, 0x04) << "nothing was done yet: no attention";
  at_the_owner(lun::Standing::kOwner);
  pair_.advance(2 * limits::kTick);
  EXPECT_EQ(*result, 1);
  EXPECT_EQ(other.execute(kTestUnitReady, 0).asc, 0x2a);
  EXPECT_EQ(other.execute(kTestUnitReady, 0).asc, 0x29) << "the owner reports it to every nexus";
}

// The volume may be another's before this owner can be reached again.
TEST_F(ForwardedResets, AResetWithoutASessionIsReturnedAndNotSentLater) {
  pair_.network = GatewayPair::Network::kSilent;
  const auto result = ask_link();
  pair_.advance(limits::kHoldCommands - limits::kTick);
  EXPECT_EQ(*result, -1);
  pair_.advance(2 * limits::kTick);
  EXPECT_EQ(*result, 0);
  pair_.network = GatewayPair::Network::kWhole;
  pair_.advance(kSecond);
  pair_.run(*nexus_, kTestUnitReady, 0);
  EXPECT_EQ(resets_at_owner(), 0u);
}

TEST_F(ForwardedResets, AResetOfAPermanentlyLostSessionIsReturnedAsNotDone) {
  pair_.owner.disk().hold(true);
  const auto w = pair_.run(*nexus_, write16(0, 1), 0, std::vector<uint8_t>(512, 1));
  const auto result = ask_link();
  EXPECT_EQ(*result, -1) << "the owner waits for its backend";
  pair_.advance(2 * limits::kHoldCommands);
  EXPECT_EQ(*result, -1) << "as long as it takes (R5)";
  pair_.network = GatewayPair::Network::kSilent;
  pair_.reset_connections();
  pair_.settle();
  pair_.advance(limits::kHoldCommands + limits::kTick);
  EXPECT_EQ(*result, 0);
  pair_.owner.disk().hold(false);
  pair_.owner.disk().release_all();
}

TEST_F(ForwardedResets, AnAbortTaskSetWaitsUntilItsOwnerIsReachableAgain) {
  EXPECT_EQ(pair_.run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
  pair_.network = GatewayPair::Network::kSilent;
  pair_.reset_connections(true);
  pair_.settle();
  int result = -1;
  link_->function(lun::LinkFunction::kAbortTaskSet, 0,
                  [&](bool carried_out) { result = carried_out; });
  pair_.advance(2 * limits::kHoldCommands);
  EXPECT_EQ(result, -1);
  pair_.network = GatewayPair::Network::kWhole;
  pair_.advance(2 * kSecond);
  EXPECT_EQ(result, 1);
}

class HostsResets : public TaskManagement {
 protected:
  static constexpr uint8_t kRejected = 255;

  // Pings may be among what came.
  void expect_answered(const pdu::Bhs& f, uint8_t response) {
    unsigned answers = 0;
    for (const Answer& a : host_.answers()) {
      if (a.header.itt() != f.itt()) continue;
      ++answers;
      EXPECT_EQ(a.header.u8(2), response);
    }
    EXPECT_EQ(answers, 1u);
  }
};

TEST_F(HostsResets, AResetOfAnUnavailableUnitIsRejectedAndTheSessionContinues) {
  set_standing(gateway_, lun::Standing::kUnavailable, 2, 0);
  host_.clear_attention();
  for (const Function f :
       {Function::kLogicalUnitReset, Function::kTargetWarmReset, Function::kTargetColdReset}) {
    const auto h = function(host_, f);
    host_.send(h);
    expect_only(host_, h, kRejected);
  }
  const auto elsewhere = function(host_, Function::kLogicalUnitReset, 1);
  host_.send(elsewhere);
  expect_only(host_, elsewhere, kComplete);
}

TEST_F(HostsResets, AResetIsAnsweredOnlyAfterTheUnitHasAnOwner) {
  set_standing(gateway_, lun::Standing::kTransitioning, 2, 0);
  const auto first = function(host_, Function::kLogicalUnitReset);
  host_.send(first);
  gateway_.advance(2 * limits::kTick);
  for (const Answer& a : host_.answers()) EXPECT_NE(a.header.itt(), first.itt());
  set_standing(gateway_, lun::Standing::kOwner, 3, 1);
  gateway_.advance(2 * limits::kTick);
  expect_answered(first, kComplete);
  set_standing(gateway_, lun::Standing::kTransitioning, 3, 0);
  const auto second = function(host_, Function::kLogicalUnitReset);
  host_.send(second);
  gateway_.advance(2 * limits::kTick);
  for (const Answer& a : host_.answers()) EXPECT_NE(a.header.itt(), second.itt());
  set_standing(gateway_, lun::Standing::kOwner, 4, 1);
  gateway_.advance(2 * limits::kTick);
  expect_answered(second, kComplete);
}

}  // namespace
}  // namespace sluice::simulation
