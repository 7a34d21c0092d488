#include "net/admission.h"

#include <gtest/gtest.h>

namespace sluice::net {
namespace {

TEST(Admission, BeyondTheConnectionsThereIsNoPlaceUntilOneEnds) {
  Admissions places(2, 2);
  auto first = places.admit();
  const auto second = places.admit();
  first->leave_login();
  EXPECT_EQ(places.admit(), nullptr);
  first.reset();
  EXPECT_NE(places.admit(), nullptr);
}

TEST(Admission, BeyondTheUnauthenticatedThereIsNoPlaceUntilALoginIsOver) {
  Admissions places(3, 1);
  const auto first = places.admit();
  EXPECT_EQ(places.admit(), nullptr);
  first->leave_login();
  first->leave_login();
  const auto second = places.admit();
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(places.admit(), nullptr) << "a login is over once";
}

TEST(Admission, WhoEndsInItsLoginLeavesIt) {
  Admissions places(2, 1);
  places.admit().reset();
  EXPECT_NE(places.admit(), nullptr);
}

}  // namespace
}  // namespace sluice::net
