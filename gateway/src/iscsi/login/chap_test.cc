#include "iscsi/login/chap.h"

#include <gtest/gtest.h>

#include <numeric>

#include "iscsi/login/login_dialogue.h"

namespace sluice::iscsi {
namespace {

using Verdict = Chap::Verdict;

constexpr std::string_view kSecret = "a secret of 16 b";
constexpr std::string_view kMutualSecret = "another secret!!";

std::vector<uint8_t> counted(size_t n) {
  std::vector<uint8_t> bytes(n);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  return bytes;
}

void count_up(uint8_t* out, size_t n) { std::iota(out, out + n, uint8_t{0}); }

// Digests of 00 | "a secret of 16 b" | 00 01 … as sha256sum and its like print them.
struct Vector {
  ChapAlgorithm algorithm;
  size_t challenge;
  const char* response;
};
const Vector kVectors[] = {
    {ChapAlgorithm::kMd5, 16, "0xd92c735af90d73b16758b07c429df3ee"},
    {ChapAlgorithm::kSha1, 20, "0x23227e38ebe12936ed8fd95c856fe56c10cadcba"},
    {ChapAlgorithm::kSha256, 32,
     "0x4c6070509a1efd737d49c7d2314e40959208ba4b19bf6b4c966ebceea6f3c7e5"},
    {ChapAlgorithm::kSha3_256, 32,
     "0x348b17ec47e5b18ea4c31b58763468b1f7734eceaedf3845f2e029ddc686f8ba"},
};

struct Exchange {
  explicit Exchange(lun::ChapCredential mutual = {})
      : chap({"user", std::string(kSecret)}, mutual) {}
  Verdict say(const Keys& keys) {
    const std::string text = text_of(keys);
    answer.clear();
    return chap.step(parse_text(text).value(), count_up, &answer);
  }
  Keys answer_keys() const { return keys_of(answer); }
  // Up to the challenge, with MD5.
  void challenged() { ASSERT_EQ(say({"CHAP_A=5"}), Verdict::kGoOn); }

  Chap chap;
  std::string answer;
};

std::string number(ChapAlgorithm a) { return std::to_string(static_cast<unsigned>(a)); }

TEST(Chap, ComputesTheKnownResponseOfEveryAlgorithm) {
  for (const Vector& v : kVectors) {
    EXPECT_EQ(binary_text(chap_response(v.algorithm, 0, kSecret, counted(v.challenge))),
              v.response);
  }
  // RFC 1994's construction with the identifier in front: MD5(01 "abc").
  EXPECT_EQ(binary_text(chap_response(ChapAlgorithm::kMd5, 1, "abc", {})),
            "0x1083241950b0ae7a1bbc0bac319dacca");
  EXPECT_TRUE(chap_response(ChapAlgorithm::kNone, 0, kSecret, {}).empty());
}

TEST(Chap, AcceptsTheRightResponseInEveryAlgorithm) {
  for (const Vector& v : kVectors) {
    Exchange e;
    ASSERT_EQ(e.say({"CHAP_A=" + number(v.algorithm)}), Verdict::kGoOn);
    EXPECT_EQ(e.answer_keys(), (Keys{"CHAP_A=" + number(v.algorithm), "CHAP_I=0",
                                     "CHAP_C=" + binary_text(counted(v.challenge))}));
    EXPECT_EQ(e.say({"CHAP_N=user", "CHAP_R=" + std::string(v.response)}), Verdict::kProven);
    EXPECT_TRUE(e.answer_keys().empty());
    EXPECT_EQ(e.chap.user(), "user");
    EXPECT_FALSE(e.chap.mutual());
  }
}

TEST(Chap, PicksTheFirstSupportedAlgorithmOfTheList) {
  for (const auto& [list, chosen] : std::initializer_list<std::pair<const char*, const char*>>{
           {"7,5", "7"}, {"5,7", "5"}, {"128,8,5", "8"}, {"0x6", "6"}}) {
    Exchange e;
    EXPECT_EQ(e.say({"CHAP_A=" + std::string(list)}), Verdict::kGoOn);
    EXPECT_EQ(e.answer_keys().front(), "CHAP_A=" + std::string(chosen));
  }
  for (const char* none : {"0", "1,2,3", "255", ","}) {
    EXPECT_EQ(Exchange().say({"CHAP_A=" + std::string(none)}), Verdict::kRefused) << none;
  }
  for (const char* bad : {"MD5", "256", "5a"}) {
    EXPECT_EQ(Exchange().say({"CHAP_A=" + std::string(bad)}), Verdict::kViolation) << bad;
  }
}

TEST(Chap, RefusesAWrongSecretAndAWrongNameAlike) {
  std::string right(kVectors[0].response);
  std::string wrong = right;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  std::string reasons[3];
  const Keys attempts[] = {{"CHAP_N=user", "CHAP_R=" + wrong},
                           {"CHAP_N=User", "CHAP_R=" + right},
                           {"CHAP_N=", "CHAP_R=0x00"}};
  for (size_t i = 0; i < 3; ++i) {
    Exchange e;
    e.challenged();
    EXPECT_EQ(e.say(attempts[i]), Verdict::kRefused);
    EXPECT_TRUE(e.answer_keys().empty());
    reasons[i] = e.chap.reason();
  }
  EXPECT_EQ(reasons[0], reasons[1]);
  EXPECT_EQ(reasons[0], reasons[2]);
  EXPECT_EQ(reasons[0].find(kSecret), std::string::npos);
}

TEST(Chap, AcceptsAResponseInBase64) {
  Exchange e;
  e.challenged();
  EXPECT_EQ(e.say({"CHAP_N=user", "CHAP_R=0b2SxzWvkNc7FnWLB8Qp3z7g=="}), Verdict::kProven);
}

TEST(Chap, MissingMalformedOrUnexpectedKeysAreViolations) {
  const std::string right = "CHAP_R=" + std::string(kVectors[0].response);
  for (const Keys& keys : {Keys{"CHAP_N=user", right}, Keys{"CHAP_A=5", "CHAP_N=user"},
                           Keys{"CHAP_I=1"}, Keys{"CHAP_A=5", "CHAP_C=0x00"}}) {
    EXPECT_EQ(Exchange().say(keys), Verdict::kViolation);
  }
  for (const Keys& keys :
       {Keys{"CHAP_A=5"}, Keys{"CHAP_N=user"}, Keys{right}, Keys{"CHAP_N=user", right, "CHAP_A=5"},
        Keys{"CHAP_N=user", "CHAP_R=secret"}, Keys{"CHAP_N=user", "CHAP_R="},
        Keys{"CHAP_N=user", right + "00"}, Keys{"CHAP_N=user", right, "CHAP_I=1"},
        Keys{"CHAP_N=user", right, "CHAP_C=0x01"},
        Keys{"CHAP_N=" + std::string(256, 'u'), right}}) {
    Exchange e;
    e.challenged();
    EXPECT_EQ(e.say(keys), Verdict::kViolation) << keys.front();
  }
}

TEST(Chap, KeysAfterTheProofAreAViolation) {
  Exchange e;
  e.challenged();
  const Keys right = {"CHAP_N=user", "CHAP_R=" + std::string(kVectors[0].response)};
  ASSERT_EQ(e.say(right), Verdict::kProven);
  EXPECT_EQ(e.say(right), Verdict::kViolation);
  EXPECT_EQ(e.say({}), Verdict::kGoOn);
}

lun::ChapCredential mutual() { return {"target", std::string(kMutualSecret)}; }

Keys proof_and(const Keys& more) {
  Keys keys = {"CHAP_N=user", "CHAP_R=" + std::string(kVectors[0].response)};
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

TEST(Chap, AnswersTheInitiatorsChallenge) {
  Exchange e(mutual());
  e.challenged();
  ASSERT_EQ(e.say(proof_and({"CHAP_I=200", "CHAP_C=0x0102030405060708090a0b0c0d0e0f10"})),
            Verdict::kProven);
  EXPECT_TRUE(e.chap.mutual());
  EXPECT_EQ(e.answer_keys(), (Keys{"CHAP_N=target", "CHAP_R=0x823236f66b569edf6fb49f629d2bf8d5"}));
}

TEST(Chap, MutualAuthenticationIsOptionalForTheInitiator) {
  Exchange e(mutual());
  e.challenged();
  EXPECT_EQ(e.say(proof_and({})), Verdict::kProven);
  EXPECT_FALSE(e.chap.mutual());
}

TEST(Chap, MutualAuthenticationWithoutACredentialIsRefused) {
  Exchange e;
  e.challenged();
  EXPECT_EQ(e.say(proof_and({"CHAP_I=1", "CHAP_C=0x0102030405060708"})), Verdict::kRefused);
}

TEST(Chap, AReflectedChallengeIsRefused) {
  Exchange e(mutual());
  e.challenged();
  EXPECT_EQ(e.say(proof_and({"CHAP_I=1", "CHAP_C=" + binary_text(counted(16))})),
            Verdict::kRefused);
  EXPECT_TRUE(e.answer_keys().empty());
}

TEST(Chap, OneSecretForBothDirectionsIsRefused) {
  Exchange e({"target", std::string(kSecret)});
  e.challenged();
  EXPECT_EQ(e.say(proof_and({"CHAP_I=1", "CHAP_C=0x0102030405060708"})), Verdict::kRefused);
  EXPECT_TRUE(e.answer_keys().empty());
}

TEST(Chap, SendsNoResponseToAnInitiatorWithAWrongProof) {
  Exchange e(mutual());
  e.challenged();
  EXPECT_EQ(e.say({"CHAP_N=user", "CHAP_R=0x00", "CHAP_I=1", "CHAP_C=0x0102030405060708"}),
            Verdict::kRefused);
  EXPECT_TRUE(e.answer_keys().empty());
}

TEST(Chap, TheInitiatorsChallengeIsBounded) {
  const std::string longest = "CHAP_C=0x" + std::string(2048, '1');
  Exchange fits(mutual());
  fits.challenged();
  EXPECT_EQ(fits.say(proof_and({"CHAP_I=255", longest})), Verdict::kProven);
  for (const Keys& bad : {Keys{"CHAP_I=1", longest + "11"}, Keys{"CHAP_I=256", "CHAP_C=0x01"},
                          Keys{"CHAP_I=x", "CHAP_C=0x01"}, Keys{"CHAP_I=1", "CHAP_C=123"}}) {
    Exchange e(mutual());
    e.challenged();
    EXPECT_EQ(e.say(proof_and(bad)), Verdict::kViolation);
  }
}

TEST(Chap, WipingLeavesNoSecret) {
  lun::HostAccess access;
  access.chap = {"user", "one secret"};
  access.mutual = {"target", "two secret"};
  const char* first = access.chap.secret.data();
  const char* second = access.mutual.secret.data();
  wipe(&access);
  EXPECT_TRUE(access.chap.secret.empty());
  EXPECT_TRUE(access.mutual.secret.empty());
  EXPECT_EQ(std::string(first, 10), std::string(10, '\0'));
  EXPECT_EQ(std::string(second, 10), std::string(10, '\0'));
}

}  // namespace
}  // namespace sluice::iscsi
