#include "control/sessions.h"

#include <gtest/gtest.h>

namespace sluice::control {
namespace {

using iscsi::HostFaultKind;

TEST(HostFaultsObserved, CarriesEachFaultWithItsKindCauseAndCount) {
  iscsi::HostFaultReport report;
  for (const HostFaultKind kind :
       {HostFaultKind::kLoginRefused, HostFaultKind::kAuthenticationFailed,
        HostFaultKind::kPingLost, HostFaultKind::kDigestError}) {
    report.faults.push_back({.kind = kind,
                             .initiator = "iqn.2026-11.example:h",
                             .address = "192.0.2.7",
                             .target = "iqn.2026-11.example:t",
                             .reason = "status 0203: none",
                             .count = 3});
  }
  report.others = 5;
  wire::HostFaultsObserved observed;
  ASSERT_TRUE(observe(report, &observed));
  ASSERT_EQ(observed.faults_size(), 4);
  EXPECT_EQ(observed.faults(0).kind(), wire::HOST_FAULT_KIND_LOGIN_REFUSED);
  EXPECT_EQ(observed.faults(1).kind(), wire::HOST_FAULT_KIND_AUTHENTICATION_FAILED);
  EXPECT_EQ(observed.faults(2).kind(), wire::HOST_FAULT_KIND_PING_LOST);
  EXPECT_EQ(observed.faults(3).kind(), wire::HOST_FAULT_KIND_DIGEST_ERROR);
  EXPECT_EQ(observed.faults(0).initiator(), "iqn.2026-11.example:h");
  EXPECT_EQ(observed.faults(0).address(), "192.0.2.7");
  EXPECT_EQ(observed.faults(0).target_iqn(), "iqn.2026-11.example:t");
  EXPECT_EQ(observed.faults(0).reason(), "status 0203: none");
  EXPECT_EQ(observed.faults(0).count(), 3u);
  EXPECT_EQ(observed.others(), 5u);
}

TEST(HostFaultsObserved, WithoutFaultsNothingIsSent) {
  wire::HostFaultsObserved observed;
  EXPECT_FALSE(observe(iscsi::HostFaultReport(), &observed));
}

TEST(HostFaultsObserved, BytesOfAPeerThatAreNotPrintableAreReplaced) {
  iscsi::HostFaultReport report;
  report.faults.push_back({.initiator = "iqn\n\x80\x1b[2J", .reason = "there is no target \xff"});
  wire::HostFaultsObserved observed;
  ASSERT_TRUE(observe(report, &observed));
  EXPECT_EQ(observed.faults(0).initiator(), "iqn???[2J");
  EXPECT_EQ(observed.faults(0).reason(), "there is no target ?");
}

}  // namespace
}  // namespace sluice::control
