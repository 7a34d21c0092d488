#include "control/membership.h"

#include <gtest/gtest.h>

namespace sluice::control {
namespace {

constexpr const char* kOurs = "11111111-2222-4333-8444-555566667777";
constexpr const char* kTheirs = "99999999-2222-4333-8444-555566667777";

wire::StreamWelcome welcome_of(const std::string& system, bool awaits_ready = false) {
  wire::StreamWelcome welcome;
  welcome.set_system_id(system);
  welcome.set_awaits_ready(awaits_ready);
  welcome.add_listen("192.0.2.1:3260");
  return welcome;
}

TEST(MembershipTest, AControlPlaneOfAnotherSystemIsRefusedUntilItIsConfirmed) {
  Membership membership(nullptr);
  EXPECT_TRUE(membership.admit(kOurs, welcome_of(kOurs)));
  const Result<Admission> other = membership.admit(kOurs, welcome_of(kTheirs));
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().find(std::string("accept-system ") + kTheirs), std::string::npos);
  EXPECT_FALSE(membership.confirm("nonsense"));
  EXPECT_TRUE(membership.confirm(kTheirs));
  EXPECT_TRUE(membership.admit(kOurs, welcome_of(kTheirs)));
  EXPECT_FALSE(membership.admit(kOurs, welcome_of(kOurs)));
}

TEST(MembershipTest, AGatewayWithoutASystemAcceptsAnySystemAndAnOldControlPlaneIsAccepted) {
  Membership membership(nullptr);
  EXPECT_TRUE(membership.admit("", welcome_of(kTheirs)));
  EXPECT_TRUE(membership.admit(kOurs, welcome_of("")));
}

TEST(MembershipTest, AHelloToAnotherSystemOmitsTheHeldState) {
  Membership membership(nullptr);
  wire::StreamHello hello;
  hello.set_held_version(7);
  hello.set_held_digest("d");
  membership.introduce(kOurs, 3, &hello);
  EXPECT_EQ(hello.system_id(), kOurs);
  EXPECT_EQ(hello.known_volumes(), 3u);
  EXPECT_EQ(hello.held_version(), 7u);
  ASSERT_TRUE(membership.confirm(kTheirs));
  hello.clear_known_volumes();
  membership.introduce(kOurs, 3, &hello);
  EXPECT_EQ(hello.system_id(), kTheirs);
  EXPECT_EQ(hello.known_volumes(), 0u);
  EXPECT_EQ(hello.held_version(), 0u);
}

TEST(MembershipTest, AProcessJoinsOnlyWhenItsPortsAreFreeAndStaysJoinedAfterwards) {
  std::vector<std::string> used{"192.0.2.1:3260"};
  Membership membership([&used](const std::vector<std::string>&) { return used; });
  const Result<Admission> first = membership.admit(kOurs, welcome_of(kOurs, true));
  ASSERT_TRUE(first);
  EXPECT_TRUE(first.value().answers);
  EXPECT_FALSE(first.value().joins);
  EXPECT_EQ(first.value().ready.in_use(0), used[0]);
  used.clear();
  EXPECT_TRUE(membership.admit(kOurs, welcome_of(kOurs, true)).value().joins);
  used = {"192.0.2.1:3260"};
  EXPECT_TRUE(membership.admit(kOurs, welcome_of(kOurs, true)).value().joins);
}

}  // namespace
}  // namespace sluice::control
