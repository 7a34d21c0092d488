#include "net/admission.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::net {
namespace {

// Connections of a kind of portal, which end when they are evicted.
class AdmissionTest : public testing::Test {
 protected:
  void make(unsigned connections, unsigned unauthenticated, unsigned of_one_network,
            std::vector<std::string> known = {}) {
    known_ = std::move(known);
    all_ = std::make_unique<Admissions>(
        connections, unauthenticated, of_one_network,
        [this](std::string_view network) {
          return std::find(known_.begin(), known_.end(), network) != known_.end();
        },
        [this](const std::shared_ptr<Admission>& one) {
          EXPECT_TRUE(one->evicted());
          std::erase(there_, one);
        });
  }
  std::weak_ptr<Admission> come(const std::string& network) {
    auto one = all_->admit(network, 0);
    if (one) there_.push_back(one);
    return one;
  }
  void end(const std::weak_ptr<Admission>& one) { std::erase(there_, one.lock()); }

  std::vector<std::string> known_;
  std::unique_ptr<Admissions> all_;
  std::vector<std::shared_ptr<Admission>> there_;
};

TEST_F(AdmissionTest, AtTheConnectionLimitOnlyAConnectionInLoginIsEvicted) {
  make(2, 2, 2);
  const auto first = come("a");
  const auto second = come("a");
  first.lock()->leave_login();
  EXPECT_FALSE(come("a").expired());
  EXPECT_TRUE(second.expired());
  EXPECT_FALSE(first.expired());
  there_.back()->leave_login();
  EXPECT_TRUE(come("a").expired()) << "all have logged in";
  end(first);
  EXPECT_FALSE(come("a").expired());
}

TEST_F(AdmissionTest, AtTheUnauthenticatedLimitTheLongestIdleConnectionIsEvicted) {
  make(9, 3, 3);
  const auto first = come("a");
  const auto second = come("a");
  const auto third = come("a");
  first.lock()->progressed();
  come("a");
  EXPECT_TRUE(second.expired());
  come("a");
  EXPECT_TRUE(third.expired());
  EXPECT_FALSE(first.expired());
  first.lock()->leave_login();
  first.lock()->leave_login();
  come("a");
  EXPECT_EQ(there_.size(), 4u) << "a login is over once";
}

TEST_F(AdmissionTest, ANetworkAtItsLimitLosesItsOwnConnections) {
  make(9, 4, 3);
  const auto other = come("b");
  const auto first = come("a");
  come("a");
  come("a");
  come("a");
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(other.expired());
}

TEST_F(AdmissionTest, TheNetworkWithTheMostConnectionsLosesOneToANewNetwork) {
  make(9, 4, 3);
  const auto lone = come("c");
  const auto first = come("a");
  come("a");
  come("a");
  EXPECT_FALSE(come("d").expired());
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(lone.expired());
  for (int i = 0; i < 20; ++i) come("a");
  EXPECT_FALSE(lone.expired()) << "the flooding network loses its own";
}

TEST_F(AdmissionTest, CapacityReservedForKnownNetworksIsNotUsedByUnknownOnes) {
  make(99, 8, 8, {"k"});
  for (int i = 0; i < 20; ++i) come("stranger " + std::to_string(i));
  EXPECT_EQ(there_.size(), 6u);
  const auto first = come("k");
  const auto second = come("k");
  EXPECT_EQ(there_.size(), 8u);
  for (int i = 0; i < 20; ++i) come("other " + std::to_string(i));
  EXPECT_FALSE(first.expired());
  EXPECT_FALSE(second.expired());
  for (int i = 0; i < 6; ++i) come("k");
  EXPECT_FALSE(first.expired()) << "strangers make room for known ones";
  EXPECT_EQ(there_.size(), 8u);
  EXPECT_TRUE(come("stranger").expired()) << "only known ones are there";
  EXPECT_FALSE(come("k").expired());
  EXPECT_TRUE(first.expired());
}

TEST_F(AdmissionTest, TheLoginTimeoutOfUnknownNetworksShrinksUnderLoad) {
  make(99, 10, 10, {"k"});
  const auto known = come("k");
  const auto stranger = come("s");
  const Nanos all = 15 * kSecond;
  EXPECT_EQ(stranger.lock()->login_timeout(all), all);
  come("s");
  come("s");
  EXPECT_EQ(stranger.lock()->login_timeout(all), limits::kLoginTimeoutHalfFull);
  come("s");
  come("s");
  EXPECT_EQ(stranger.lock()->login_timeout(all), limits::kLoginTimeoutNearlyFull);
  EXPECT_EQ(stranger.lock()->login_timeout(kSecond), kSecond) << "less is configured";
  EXPECT_EQ(known.lock()->login_timeout(all), all);
}

TEST(Admission, ConnectionLimitsLeaveDescriptorsForVolumesAndStreams) {
  const auto bounds = [](uint64_t descriptors) {
    const ConnectionBounds b = bound_connections(descriptors, limits::kMaxConnections);
    return std::pair(b.hosts, b.gateways);
  };
  const std::pair all(limits::kMaxConnections, limits::kMaxForwardingConnections);
  EXPECT_EQ(bounds(UINT64_MAX), all) << "RLIM_INFINITY";
  EXPECT_EQ(bounds(65536), all);
  EXPECT_EQ(bounds(1024), std::pair(512u, 256u));
  for (uint64_t n = 4; n < 20000; ++n) {
    const auto [hosts, gateways] = bounds(n);
    EXPECT_GE(hosts, 1u);
    EXPECT_GE(n - hosts - gateways, std::min<uint64_t>(n / 4, limits::kOtherDescriptors)) << n;
  }
}

}  // namespace
}  // namespace sluice::net
