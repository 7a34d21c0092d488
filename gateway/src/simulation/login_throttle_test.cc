// A failing answer that is held back (iscsi/login/login_throttle.h), and a connection that makes
// room for another one (net/admission.h).
#include <gtest/gtest.h>

#include "simulation/initiator.h"

namespace sluice::simulation {
namespace {

constexpr uint16_t kAuthenticationFailure = 0x0201;

class HeldAnswers : public testing::Test {
 protected:
  void SetUp() override {
    lun::HostAccess access;
    access.chap = {"user", "a secret of 16 b"};
    gateway_.target().set_hosts({access});
    for (unsigned i = 0; i < limits::kFreeLoginFailures; ++i) {
      Initiator host(gateway_.connect());
      const auto a = host.login();
      ASSERT_TRUE(a);
      EXPECT_EQ(a->header.u16(36), kAuthenticationFailure);
    }
  }
  uint64_t delayed() { return gateway_.shard().counters->logins_delayed; }

  SimulatedGateway gateway_;
};

TEST_F(HeldAnswers, ALoginFailureBeyondTheFreeFailuresIsAnsweredAfterADelay) {
  EXPECT_EQ(delayed(), 0u);
  Initiator host(gateway_.connect());
  EXPECT_FALSE(host.login()) << "not answered yet";
  EXPECT_EQ(delayed(), 1u);
  host.send(host.request(pdu::Opcode::kNopOut, true));
  gateway_.advance(limits::kRefusalDelayLeast + 2 * limits::kTick);
  const auto a = host.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.opcode(), pdu::Opcode::kLoginResponse);
  EXPECT_EQ(a->header.u16(36), kAuthenticationFailure);
  EXPECT_TRUE(host.answers().empty()) << "what came meanwhile is ignored";
  EXPECT_TRUE(host.connection().ended());
}

TEST_F(HeldAnswers, AConnectionThatIsClosedDuringTheDelayEnds) {
  Initiator host(gateway_.connect());
  EXPECT_FALSE(host.login());
  host.connection().hang_up();
  gateway_.run();
  EXPECT_TRUE(host.connection().ended());
}

TEST_F(HeldAnswers, ALoginToAnUnknownTargetIsAnsweredImmediately) {
  Initiator host(gateway_.connect());
  const auto a = host.login({}, "iqn.2026-11.dev.sluice:nowhere");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.u16(36), 0x0203);
}

TEST_F(HeldAnswers, FailuresAreReportedWithTheirInitiatorAndCount) {
  const iscsi::HostFaultReport report = gateway_.gateway().host_faults.take_report();
  ASSERT_EQ(report.faults.size(), 1u);
  EXPECT_EQ(report.faults[0].kind, iscsi::HostFaultKind::kAuthenticationFailed);
  EXPECT_EQ(report.faults[0].initiator, Initiator::kName);
  EXPECT_EQ(report.faults[0].count, limits::kFreeLoginFailures);
}

TEST(MakeRoom, EndsAPendingLoginAndAnUnauthenticatedDiscoverySession) {
  SimulatedGateway gateway;
  SimulatedConnection& silent = gateway.connect();
  silent.core().make_room();
  gateway.run();
  EXPECT_TRUE(silent.ended());
  Initiator finder(gateway.connect());
  ASSERT_TRUE(finder.login({}, ""));
  EXPECT_TRUE(finder.connection().in_login()) << "it may make room for others";
  finder.connection().core().make_room();
  gateway.run();
  EXPECT_TRUE(finder.connection().ended());
  EXPECT_EQ(gateway.shard().counters->connections_evicted, 2u);
  Initiator host(gateway.connect());
  ASSERT_TRUE(host.login());
  EXPECT_FALSE(host.connection().in_login());
}

}  // namespace
}  // namespace sluice::simulation
