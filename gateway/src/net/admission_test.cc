#include "net/admission.h"

#include <gtest/gtest.h>

namespace sluice::net {
namespace {

TEST(Admission, BeyondTheConnectionsThereIsNoPlaceUntilOneEnds) {
  Admissions places(2, 2, 2);
  auto first = places.admit("a");
  const auto second = places.admit("a");
  first->leave_login();
  EXPECT_EQ(places.admit("a"), nullptr);
  first.reset();
  EXPECT_NE(places.admit("a"), nullptr);
}

TEST(Admission, BeyondTheUnauthenticatedThereIsNoPlaceUntilALoginIsOver) {
  Admissions places(3, 1, 1);
  const auto first = places.admit("a");
  EXPECT_EQ(places.admit("a"), nullptr);
  first->leave_login();
  first->leave_login();
  const auto second = places.admit("a");
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(places.admit("a"), nullptr) << "a login is over once";
}

TEST(Admission, OneNetworkHasNoMoreThanItsPartOfThePlacesInLogin) {
  Admissions places(9, 3, 2);
  const auto first = places.admit("a");
  const auto second = places.admit("a");
  EXPECT_EQ(places.admit("a"), nullptr);
  const auto other = places.admit("b");
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(places.admit("c"), nullptr) << "all places are taken";
  first->leave_login();
  EXPECT_NE(places.admit("a"), nullptr);
}

TEST(Admission, WithFewDescriptorsConnectionsLeaveSomeForVolumesAndStreams) {
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

TEST(Admission, WhoEndsInItsLoginLeavesIt) {
  Admissions places(2, 1, 1);
  places.admit("a").reset();
  EXPECT_NE(places.admit("a"), nullptr);
}

}  // namespace
}  // namespace sluice::net
