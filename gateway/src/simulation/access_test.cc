// Who loses the right to a target leaves it: asked first (RFC 7143 §11.9.1 event 1), then dropped.
#include <gtest/gtest.h>

#include "iscsi/session_directory.h"
#include "simulation/initiator.h"

namespace sluice::simulation {
namespace {

using pdu::Opcode;

constexpr const char* kOther = "iqn.2026-11.dev.sluice.test:other";
constexpr uint16_t kNotFound = 0x0203;

class Access : public testing::Test {
 protected:
  void SetUp() override {
    other_.name = kOther;
    for (Initiator* h : {&host_, &other_}) {
      ASSERT_TRUE(h->login());
      h->clear_attention();
    }
  }
  static lun::HostAccess admit(const char* name) {
    lun::HostAccess access;
    access.initiators = {name};
    return access;
  }
  void review() {
    gateway_.gateway().directory->review_all(SimulatedGateway::kTarget);
    gateway_.run();
  }
  void set_hosts(std::vector<lun::HostAccess> hosts) {
    gateway_.target().set_hosts(std::move(hosts));
    review();
  }
  void remove_target() {
    gateway_.target().set_luns({}, gateway_);
    gateway_.exports().remove(SimulatedGateway::kTarget, gateway_);
    review();
  }
  static void expect_asked(Initiator& host) {
    const auto a = host.answer();
    ASSERT_TRUE(a);
    EXPECT_EQ(a->header.opcode(), Opcode::kAsyncMessage);
    EXPECT_EQ(a->header.u8(36), 1) << "logout requested";
    EXPECT_EQ(a->header.u16(42), limits::kEvictionLogout / kSecond) << "Parameter3";
    EXPECT_FALSE(host.connection().closed());
  }
  static void expect_at_home(Initiator& host) {
    EXPECT_TRUE(host.answers().empty());
    EXPECT_EQ(host.execute(kTestUnitReady, 0).status, 0);
  }
  uint16_t login_status(const char* name) {
    Initiator late(gateway_.connect());
    late.name = name;
    late.isid[5] = 9;
    const auto a = late.login();
    return a ? a->header.u16(36) : uint16_t{0xffff};
  }

  SimulatedGateway gateway_;
  Initiator host_{gateway_.connect()};
  Initiator other_{gateway_.connect()};
};

TEST_F(Access, ARemovedTargetRequestsLogoutOfItsSessions) {
  remove_target();
  expect_asked(host_);
  expect_asked(other_);
  host_.send(host_.request(Opcode::kLogoutRequest, true));
  const auto a = host_.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.opcode(), Opcode::kLogoutResponse);
  EXPECT_TRUE(host_.connection().ended());
}

TEST_F(Access, ASessionThatDoesNotLogOutIsDroppedAfterTheLogoutTimeout) {
  remove_target();
  gateway_.advance(limits::kEvictionLogout - limits::kTick);
  EXPECT_FALSE(host_.connection().closed());
  gateway_.advance(2 * limits::kTick);
  EXPECT_TRUE(host_.connection().ended());
  EXPECT_TRUE(other_.connection().ended());
}

TEST_F(Access, ASessionThatDoesNotReadIsDroppedAfterTheLogoutTimeout) {
  host_.connection().set_reading(false);
  remove_target();
  gateway_.advance(limits::kEvictionLogout + limits::kTick);
  EXPECT_TRUE(host_.connection().ended());
}

TEST_F(Access, AnEvictedSessionEndsAfterItsCommandsInTheBackendHaveEnded) {
  gateway_.disk().hold(true);
  host_.send(host_.command(read16(0, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512));
  remove_target();
  gateway_.advance(limits::kEvictionLogout + limits::kTick);
  EXPECT_TRUE(host_.connection().closed());
  EXPECT_FALSE(host_.connection().ended()) << "DESIGN R5";
  gateway_.disk().hold(false);
  gateway_.disk().release_all();
  gateway_.run();
  EXPECT_TRUE(host_.connection().ended());
}

TEST_F(Access, ALoginToARemovedTargetIsRejectedAsNotFound) {
  remove_target();
  EXPECT_EQ(login_status(Initiator::kName), kNotFound);
}

TEST_F(Access, OnlyTheHostWhoseEntryIsRemovedIsEvicted) {
  set_hosts({admit(kOther)});
  expect_asked(host_);
  expect_at_home(other_);
  gateway_.advance(limits::kEvictionLogout + limits::kTick);
  EXPECT_TRUE(host_.connection().ended());
  EXPECT_FALSE(other_.connection().closed());
  EXPECT_EQ(login_status(Initiator::kName), kNotFound) << "as if the target were gone";
}

TEST_F(Access, AHostThatLosesWriteAccessIsRequestedToLogOut) {
  lun::HostAccess reader = admit(Initiator::kName);
  reader.read_only = true;
  set_hosts({reader, admit(kOther)});
  expect_asked(host_);
  expect_at_home(other_);
}

TEST_F(Access, ASessionWithoutChapIsRequestedToLogOutWhenItsHostMustAuthenticate) {
  lun::HostAccess secret;
  secret.chap = {"user", "another secret"};
  set_hosts({secret});
  expect_asked(host_);
}

TEST_F(Access, LogoutIsRequestedOnlyOnce) {
  remove_target();
  expect_asked(host_);
  review();
  EXPECT_TRUE(host_.answers().empty());
}

// The claim waits for the session it replaces; its login was fine when it began.
TEST_F(Access, APendingLoginIsRejectedWhenItsTargetIsRemoved) {
  gateway_.disk().hold(true);
  host_.send(host_.command(read16(0, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512));
  Initiator again(gateway_.connect());
  ASSERT_FALSE(again.login()) << "it waits";
  remove_target();
  gateway_.disk().hold(false);
  gateway_.disk().release_all();
  gateway_.run();
  const auto a = again.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.opcode(), Opcode::kLoginResponse);
  EXPECT_EQ(a->header.u16(36), kNotFound);
  EXPECT_TRUE(again.connection().ended());
}

TEST_F(Access, ATargetReplacedUnderTheSameNameRequestsLogoutOfItsSessions) {
  gateway_.exports().add(
      std::make_shared<lun::Target>(SimulatedGateway::kTarget, "another", uint16_t{1}));
  review();
  expect_asked(host_);
}

}  // namespace
}  // namespace sluice::simulation
