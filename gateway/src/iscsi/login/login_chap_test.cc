#include <gtest/gtest.h>

#include "iscsi/login/chap.h"
#include "iscsi/login/login_dialogue.h"
#include "iscsi/login/text.h"

namespace sluice::iscsi {
namespace {

using Outcome = Login::Outcome;

// The dialogue's random bytes: the identifier is a0, the challenge a0 a1 …
constexpr uint8_t kIdentifier = 0xa0;

std::vector<uint8_t> challenge(size_t n) {
  std::vector<uint8_t> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<uint8_t>(0xa0 + i);
  return bytes;
}

std::string response(ChapAlgorithm algorithm, std::string_view secret, size_t size) {
  return "CHAP_R=" + binary_text(chap_response(algorithm, kIdentifier, secret, challenge(size)));
}

std::string md5_response(std::string_view secret = "a secret of 16 b") {
  return response(ChapAlgorithm::kMd5, secret, 16);
}

void begin_chap(LoginDialogue& d, std::string_view target, const std::string& algorithms) {
  Reply method =
      d.send(kSecurityToOperational, LoginDialogue::names(target, {"AuthMethod=CHAP,None"}));
  ASSERT_EQ(method.outcome, Outcome::kContinue);
  ASSERT_EQ(method.flags(), kSecurityStays);
  ASSERT_EQ(method.keys(), (Keys{"TargetPortalGroupTag=7", "AuthMethod=CHAP"}));
  Reply asked = d.send(kSecurityToOperational, {"CHAP_A=" + algorithms});
  ASSERT_EQ(asked.outcome, Outcome::kContinue);
  ASSERT_EQ(asked.flags(), kSecurityStays) << "not proven yet";
  ASSERT_EQ(asked.keys().size(), 3u);
  ASSERT_EQ(asked.keys()[1], "CHAP_I=160");
}

TEST(LoginChap, EveryAlgorithmAuthenticatesTheInitiator) {
  const struct {
    ChapAlgorithm algorithm;
    size_t challenge;
  } cases[] = {{ChapAlgorithm::kMd5, 16},
               {ChapAlgorithm::kSha1, 20},
               {ChapAlgorithm::kSha256, 32},
               {ChapAlgorithm::kSha3_256, 32}};
  for (const auto& c : cases) {
    LoginDialogue d;
    begin_chap(d, kChapTarget, std::to_string(static_cast<unsigned>(c.algorithm)));
    Reply proven = d.send(kSecurityToOperational,
                          {"CHAP_N=user", response(c.algorithm, "a secret of 16 b", c.challenge)});
    ASSERT_EQ(proven.outcome, Outcome::kContinue) << d.login().reason();
    EXPECT_EQ(proven.flags(), kSecurityToOperational);
    EXPECT_TRUE(proven.keys().empty());
    ASSERT_EQ(d.send(kOperationalToFull, {}).outcome, Outcome::kSucceeded);
    EXPECT_EQ(d.login().parameters().auth_method, "CHAP");
    EXPECT_EQ(d.login().parameters().auth_user, "user");
    EXPECT_FALSE(d.login().parameters().mutual_auth);
  }
}

TEST(LoginChap, TheTargetAuthenticatesItselfIfTheInitiatorRequestsIt) {
  LoginDialogue d;
  begin_chap(d, kMutualTarget, "5");
  Reply proven = d.send(kSecurityToFull, {"CHAP_N=user", md5_response(), "CHAP_I=7",
                                          "CHAP_C=0x00112233445566778899aabbccddeeff"});
  ASSERT_EQ(proven.outcome, Outcome::kSucceeded) << d.login().reason();
  const std::vector<uint8_t> theirs = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                       0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
  EXPECT_EQ(
      proven.keys(),
      (Keys{"CHAP_N=target", "CHAP_R=" + binary_text(chap_response(ChapAlgorithm::kMd5, 7,
                                                                   "another secret!!", theirs))}));
  EXPECT_TRUE(d.login().parameters().mutual_auth);
}

TEST(LoginChap, TheTransitMayBeRequestedAfterTheProof) {
  LoginDialogue d;
  begin_chap(d, kChapTarget, "5");
  EXPECT_EQ(d.send(kSecurityStays, {"CHAP_N=user", md5_response()}).flags(), kSecurityStays);
  EXPECT_EQ(d.send(kSecurityToOperational, {}).flags(), kSecurityToOperational);
}

TEST(LoginChap, ATransitRequestWithoutAProofDoesNotChangeTheStage) {
  LoginDialogue d;
  begin_chap(d, kChapTarget, "5");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(d.send(kSecurityToFull, {}).flags(), kSecurityStays);
  }
}

TEST(LoginChap, WrongProofsFailWith0201AndMalformedProofsWith0200) {
  const struct {
    Keys keys;
    LoginStatus status;
  } cases[] = {
      {{"CHAP_N=user", md5_response("another secret!!")}, LoginStatus::kAuthenticationFailure},
      {{"CHAP_N=admin", md5_response()}, LoginStatus::kAuthenticationFailure},
      {{"CHAP_N=user", md5_response(), "CHAP_I=1", "CHAP_C=" + binary_text(challenge(16))},
       LoginStatus::kAuthenticationFailure},
      {{"CHAP_N=user", md5_response(), "CHAP_I=1"}, LoginStatus::kInitiatorError},
      {{md5_response()}, LoginStatus::kInitiatorError},
      {{"CHAP_A=5"}, LoginStatus::kInitiatorError},
      {{"AuthMethod=CHAP"}, LoginStatus::kInitiatorError},
  };
  for (const auto& c : cases) {
    LoginDialogue d;
    begin_chap(d, kMutualTarget, "5");
    Reply reply = d.send(kSecurityToOperational, c.keys);
    EXPECT_EQ(reply.outcome, Outcome::kFailed);
    EXPECT_EQ(reply.status(), static_cast<uint16_t>(c.status)) << d.login().reason();
    EXPECT_TRUE(reply.answer.text.empty());
  }
}

TEST(LoginChap, NoCommonAlgorithmFailsWith0201) {
  LoginDialogue d;
  d.send(kSecurityToOperational, LoginDialogue::names(kChapTarget, {"AuthMethod=CHAP"}));
  EXPECT_EQ(d.send(kSecurityToOperational, {"CHAP_A=9"}).status(), 0x0201);
}

TEST(LoginChap, TheReasonRevealsNoSecret) {
  LoginDialogue d;
  begin_chap(d, kChapTarget, "5");
  d.send(kSecurityToOperational, {"CHAP_N=user", md5_response("wrong")});
  EXPECT_EQ(d.login().reason().find("a secret"), std::string::npos);
}

}  // namespace
}  // namespace sluice::iscsi
