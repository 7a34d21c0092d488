#include "iscsi/login/chap.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace sluice::iscsi {
namespace {

constexpr size_t kMaxChallenge = 1024;  // bytes, RFC 7143 §12.1.3
constexpr size_t kMaxUserName = 255;    // simple-value, §6.1

const EVP_MD* digest_of(ChapAlgorithm algorithm) {
  switch (algorithm) {
    case ChapAlgorithm::kMd5:
      return EVP_md5();
    case ChapAlgorithm::kSha1:
      return EVP_sha1();
    case ChapAlgorithm::kSha256:
      return EVP_sha256();
    case ChapAlgorithm::kSha3_256:
      return EVP_sha3_256();
    case ChapAlgorithm::kNone:
      break;
  }
  return nullptr;
}

size_t response_size(ChapAlgorithm algorithm) {
  const EVP_MD* digest = digest_of(algorithm);
  return digest == nullptr ? 0 : static_cast<size_t>(EVP_MD_get_size(digest));
}

// Compares without telling by its time where two strings differ.
bool same_bytes(ByteView a, ByteView b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string number_text(ChapAlgorithm algorithm) {
  return std::to_string(static_cast<unsigned>(algorithm));
}

}  // namespace

std::vector<uint8_t> chap_response(ChapAlgorithm algorithm, uint8_t identifier,
                                   std::string_view secret, ByteView challenge) {
  const EVP_MD* digest = digest_of(algorithm);
  if (digest == nullptr) return {};
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                  &EVP_MD_CTX_free);
  std::vector<uint8_t> response(static_cast<size_t>(EVP_MD_get_size(digest)));
  bool done = context != nullptr && EVP_DigestInit_ex(context.get(), digest, nullptr) == 1 &&
              EVP_DigestUpdate(context.get(), &identifier, 1) == 1 &&
              EVP_DigestUpdate(context.get(), secret.data(), secret.size()) == 1 &&
              EVP_DigestUpdate(context.get(), challenge.data(), challenge.size()) == 1 &&
              EVP_DigestFinal_ex(context.get(), response.data(), nullptr) == 1;
  return done ? response : std::vector<uint8_t>{};
}

struct Chap::Keys {
  std::optional<std::string_view> a, n, r, i, c;
};

Chap::Chap(const lun::ChapCredential& expected, const lun::ChapCredential& mutual)
    : pairs_{{expected, mutual}} {}

Chap::Chap(std::vector<ChapPair> pairs, ChapAlgorithm only)
    : pairs_(std::move(pairs)), only_(only) {}

Chap::~Chap() {
  for (ChapPair& pair : pairs_) wipe(&pair);
}

Chap::Verdict Chap::refuse(std::string_view why) {
  reason_ = why;
  step_ = Step::kDone;
  return Verdict::kRefused;
}

Chap::Verdict Chap::violation(std::string_view why) {
  reason_ = why;
  step_ = Step::kDone;
  return Verdict::kViolation;
}

Chap::Verdict Chap::step(std::span<const TextPair> pairs, const Random& random,
                         std::string* answers) {
  Keys keys;
  for (const TextPair& pair : pairs) {
    if (pair.key == "CHAP_A") keys.a = pair.value;
    if (pair.key == "CHAP_N") keys.n = pair.value;
    if (pair.key == "CHAP_R") keys.r = pair.value;
    if (pair.key == "CHAP_I") keys.i = pair.value;
    if (pair.key == "CHAP_C") keys.c = pair.value;
  }
  bool none = !keys.a && !keys.n && !keys.r && !keys.i && !keys.c;
  if (none) return Verdict::kGoOn;
  if (step_ == Step::kAlgorithm && keys.a && !keys.n && !keys.r && !keys.i && !keys.c) {
    return choose_algorithm(keys, random, answers);
  }
  if (step_ == Step::kResponse && !keys.a && keys.n && keys.r && !keys.i == !keys.c) {
    return check_response(keys, answers);
  }
  return violation("CHAP keys are missing or out of turn");
}

Chap::Verdict Chap::choose_algorithm(const Keys& keys, const Random& random, std::string* answers) {
  for (std::string_view item : split_list(*keys.a)) {
    std::optional<uint64_t> number = parse_number(item);
    if (!number || *number > 255) return violation("CHAP_A is not a list of numbers");
    auto candidate = static_cast<ChapAlgorithm>(*number);
    // The digest of the right length proves that OpenSSL's policy allows the algorithm.
    const bool allowed = only_ == ChapAlgorithm::kNone || candidate == only_;
    if (allowed && !chap_response(candidate, 0, {}, {}).empty()) {
      algorithm_ = candidate;
      break;
    }
  }
  if (algorithm_ == ChapAlgorithm::kNone) {
    return refuse("the initiator offers no CHAP algorithm that is supported");
  }
  // §9.2.1: at least 128 bits; more would not outlive the digest.
  challenge_.resize(std::max<size_t>(response_size(algorithm_), 16));
  random(&identifier_, 1);
  random(challenge_.data(), challenge_.size());
  append_pair(answers, "CHAP_A", number_text(algorithm_));
  append_pair(answers, "CHAP_I", std::to_string(identifier_));
  append_pair(answers, "CHAP_C", binary_text(challenge_));
  step_ = Step::kResponse;
  return Verdict::kGoOn;
}

// The name and the response are both judged in full before either counts, so that a wrong name
// takes as long as a wrong secret.
Chap::Verdict Chap::check_response(const Keys& keys, std::string* answers) {
  if (keys.n->size() > kMaxUserName) return violation("CHAP_N is longer than 255 bytes");
  std::optional<std::vector<uint8_t>> response = parse_binary(*keys.r, response_size(algorithm_));
  if (!response) return violation("CHAP_R is malformed or of the wrong length");
  const auto named = std::find_if(pairs_.begin(), pairs_.end(), [&](const ChapPair& pair) {
    // A credential without a name is incomplete: a peer that sends an empty CHAP_N must not match.
    return !pair.expected.user.empty() &&
           same_bytes(as_bytes(pair.expected.user), as_bytes(*keys.n));
  });
  const bool same_user = named != pairs_.end();
  const ChapPair& pair = same_user ? *named : pairs_.front();
  std::vector<uint8_t> right =
      chap_response(algorithm_, identifier_, pair.expected.secret, challenge_);
  bool same_secret = !right.empty() && same_bytes(right, *response);
  OPENSSL_cleanse(right.data(), right.size());
  if (!(static_cast<int>(same_secret) & static_cast<int>(same_user))) {
    return refuse("the CHAP name or response is wrong");
  }
  if (keys.c) {
    Verdict verdict = answer_challenge(keys, pair, answers);
    if (verdict != Verdict::kGoOn) return verdict;
    answered_ = true;
  }
  user_ = *keys.n;
  step_ = Step::kDone;
  for (ChapPair& done : pairs_) wipe(&done);
  return Verdict::kProven;
}

// Called only for an authenticated initiator (§12.1.3), so that no other peer gets a response that
// it could attack offline.
Chap::Verdict Chap::answer_challenge(const Keys& keys, const ChapPair& pair, std::string* answers) {
  std::optional<uint64_t> identifier = parse_number(*keys.i);
  std::optional<std::vector<uint8_t>> challenge = parse_binary(*keys.c, kMaxChallenge);
  if (!identifier || *identifier > 255) return violation("CHAP_I is not a byte");
  if (!challenge || challenge->empty()) return violation("CHAP_C is malformed or too long");
  if (!pair.mutual.configured()) {
    return refuse("the initiator asks for mutual CHAP, but no credential is configured for it");
  }
  // §9.2.1: a challenge of ours that comes back is a reflection attack.
  if (same_bytes(*challenge, challenge_)) {
    return refuse("the initiator sent our own CHAP challenge back");
  }
  // §9.2.1: one secret for both directions would let a response of one serve the other.
  if (same_bytes(as_bytes(pair.mutual.secret), as_bytes(pair.expected.secret))) {
    return refuse("the CHAP secrets of both directions are the same; configure two");
  }
  std::vector<uint8_t> response =
      chap_response(algorithm_, static_cast<uint8_t>(*identifier), pair.mutual.secret, *challenge);
  if (response.empty()) return refuse("the CHAP response could not be computed");
  append_pair(answers, "CHAP_N", pair.mutual.user);
  append_pair(answers, "CHAP_R", binary_text(response));
  return Verdict::kGoOn;
}

void wipe(lun::ChapCredential* credential) {
  OPENSSL_cleanse(credential->secret.data(), credential->secret.size());
  credential->secret.clear();
}

void wipe(ChapPair* pair) {
  wipe(&pair->expected);
  wipe(&pair->mutual);
}

void wipe(lun::HostAccess* access) {
  wipe(&access->chap);
  wipe(&access->mutual);
}

}  // namespace sluice::iscsi
