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

TEST(Admission, WhoEndsInItsLoginLeavesIt) {
  Admissions places(2, 1, 1);
  places.admit("a").reset();
  EXPECT_NE(places.admit("a"), nullptr);
}

}  // namespace
}  // namespace sluice::net
