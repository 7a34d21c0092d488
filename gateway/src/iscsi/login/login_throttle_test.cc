#include "iscsi/login/login_throttle.h"

#include <gtest/gtest.h>

#include <optional>

#include "iscsi/login/known_networks.h"

namespace sluice::iscsi {
namespace {

constexpr std::string_view kName = "iqn.2026-11.example:host";
constexpr std::string_view kOther = "iqn.2026-11.example:other";

LoginPeer at(std::string_view address, std::string_view name = kName) {
  return {name, address, address};
}

class LoginThrottleTest : public testing::Test {
 protected:
  // One attempt with a wrong secret; how long its answer waits, or nothing if it was not evaluated.
  std::optional<Nanos> guess(const LoginPeer& peer) {
    const bool evaluated = throttle_.may_try(peer, now_);
    const Nanos delay = throttle_.failed(peer, evaluated, now_);
    return evaluated ? std::optional(delay) : std::nullopt;
  }
  // Attempts without an end, as fast as they are answered; how many are evaluated.
  unsigned guess_for(Nanos span, const LoginPeer& peer) {
    unsigned evaluated = 0;
    for (const Nanos end = now_ + span; now_ < end; now_ += kMillisecond) {
      if (guess(peer)) ++evaluated;
    }
    return evaluated;
  }

  // Attempts until one is not evaluated.
  void exhaust(const LoginPeer& peer) {
    guess_for(20 * kSecond, peer);
    while (guess(peer)) {
    }
  }

  LoginThrottle throttle_;
  Nanos now_ = kSecond;
};

TEST_F(LoginThrottleTest, TheDelayOfTheAnswerDoublesWithEachFurtherFailure) {
  for (unsigned i = 0; i < limits::kFreeLoginFailures; ++i) EXPECT_EQ(guess(at("a")), 0);
  for (Nanos delay = limits::kRefusalDelayLeast; delay < limits::kRefusalDelayMost; delay *= 2) {
    EXPECT_EQ(guess(at("a")), delay);
    now_ += kSecond;
  }
  now_ += 10 * kSecond;
  EXPECT_EQ(guess(at("a")), limits::kRefusalDelayMost);
  now_ += limits::kFailuresForgotten + 1;
  EXPECT_EQ(guess(at("a")), 0) << "forgotten";
}

TEST_F(LoginThrottleTest, AnAddressThatDoesNotWaitForItsAnswersGuessesNoFaster) {
  guess_for(10 * kSecond, at("a"));
  const unsigned in_a_minute = guess_for(60 * kSecond, at("a"));
  EXPECT_LE(in_a_minute, limits::kFailedLoginsAtOnce * 31);
  EXPECT_GE(in_a_minute, limits::kFailedLoginsAtOnce) << "it is slowed down, not locked out";
  exhaust(at("a"));
  EXPECT_FALSE(guess(at("a", kOther))) << "whatever name it uses";
}

TEST_F(LoginThrottleTest, FailuresAtOneAddressDoNotLockOutTheHostAtAnotherAddress) {
  exhaust(at("a"));
  EXPECT_TRUE(throttle_.may_try(at("b"), now_)) << "never seen before";
  EXPECT_EQ(guess(at("b")), limits::kRefusalDelayMost) << "a wrong secret waits";
  for (int i = 0; i < 3; ++i) {
    guess_for(limits::kOwnLoginTry, at("a"));
    EXPECT_TRUE(throttle_.may_try(at("b"), now_)) << "it had failed, and may try again";
    guess(at("b"));
  }
}

TEST_F(LoginThrottleTest, AHostThatHasLoggedInIsNotRefusedForFailuresOfItsNeighbours) {
  throttle_.succeeded(at("a"));
  exhaust(at("a", kOther));
  EXPECT_FALSE(throttle_.may_try(at("a", kOther), now_));
  EXPECT_TRUE(throttle_.may_try(at("a"), now_));
  exhaust(at("a"));
  EXPECT_FALSE(throttle_.may_try(at("a"), now_)) << "its own failures count";
}

// Each has one attempt at once, then one in kOwnLoginTry, and all together those of the name.
TEST_F(LoginThrottleTest, AttemptsForOneNameFromManyAddressesAreBounded) {
  unsigned evaluated = 0;
  for (const Nanos end = now_ + 60 * kSecond; now_ < end; now_ += 10 * kMillisecond) {
    for (int i = 0; i < 20; ++i) {
      if (guess(at("address " + std::to_string(i)))) ++evaluated;
    }
  }
  EXPECT_LE(evaluated, 20 * (1 + 60 * kSecond / limits::kOwnLoginTry) + 8 * 31 + 64);
}

TEST_F(LoginThrottleTest, ATableRetainsOnlyTheMostRecentlyUsedEntries) {
  RecencyTable<int> table(3);
  table.use("a") = 1;
  table.use("b") = 2;
  table.use("c") = 3;
  table.use("a");
  table.use("d") = 4;
  EXPECT_EQ(table.size(), 3u);
  EXPECT_EQ(table.find("b"), nullptr);
  ASSERT_NE(table.find("a"), nullptr);
  EXPECT_EQ(*table.find("a"), 1);
}

TEST(KnownNetworks, ConfiguredNetworksAndNetworksWithASuccessfulLoginAreKnown) {
  KnownNetworks networks;
  networks.configure({"b", "", "a"});
  EXPECT_TRUE(networks.known("a") && networks.known("b"));
  EXPECT_FALSE(networks.known("")) << "no address has that network";
  networks.succeeded("c");
  networks.configure({"d"});
  EXPECT_TRUE(networks.known("c") && networks.known("d"));
  EXPECT_FALSE(networks.known("a"));
}

}  // namespace
}  // namespace sluice::iscsi
