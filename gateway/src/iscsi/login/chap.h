// The target's side of CHAP (RFC 7143 §12.1.3, RFC 1994): challenges the initiator, checks its
// response in constant time and, if requested, answers the initiator's challenge.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "iscsi/login/text.h"
#include "nexus/exports.h"

namespace sluice::iscsi {

enum class ChapAlgorithm : uint8_t {  // numbers registered with IANA for PPP authentication
  kNone = 0,
  kMd5 = 5,
  kSha1 = 6,
  kSha256 = 7,
  kSha3_256 = 8,
};

// H(identifier | secret | challenge); empty: OpenSSL does not support the algorithm.
std::vector<uint8_t> chap_response(ChapAlgorithm algorithm, uint8_t identifier,
                                   std::string_view secret, ByteView challenge);

// The credentials of both directions: `expected` authenticates the initiator, `mutual` the target.
struct ChapPair {
  lun::ChapCredential expected;
  lun::ChapCredential mutual;
};

// One exchange: CHAP_A, then CHAP_N with CHAP_R and, for mutual authentication, CHAP_I and CHAP_C.
// It copies the secrets and erases them in its destructor.
class Chap {
 public:
  using Random = std::function<void(uint8_t* out, size_t n)>;
  Chap(const lun::ChapCredential& expected, const lun::ChapCredential& mutual);
  // Of several pairs (at least one), the one with the user in CHAP_N counts. `only`: the only
  // permitted algorithm; kNone: any supported one.
  Chap(std::vector<ChapPair> pairs, ChapAlgorithm only);
  ~Chap();
  Chap(const Chap&) = delete;
  Chap& operator=(const Chap&) = delete;

  enum class Verdict : uint8_t {
    kGoOn,       // send the answers, if any, and continue
    kProven,     // the initiator is authenticated
    kRefused,    // login status 02/01
    kViolation,  // keys missing, malformed or in the wrong order: login status 02/00
  };
  // Processes the CHAP_ keys of one request. reason() never contains a secret.
  Verdict step(std::span<const TextPair> pairs, const Random& random, std::string* answers);
  const std::string& reason() const { return reason_; }
  const std::string& user() const { return user_; }
  bool mutual() const { return answered_; }

 private:
  enum class Step : uint8_t { kAlgorithm, kResponse, kDone };
  struct Keys;
  Verdict choose_algorithm(const Keys& keys, const Random& random, std::string* answers);
  Verdict check_response(const Keys& keys, std::string* answers);
  Verdict answer_challenge(const Keys& keys, const ChapPair& pair, std::string* answers);
  Verdict refuse(std::string_view why);
  Verdict violation(std::string_view why);

  std::vector<ChapPair> pairs_;
  const ChapAlgorithm only_ = ChapAlgorithm::kNone;
  Step step_ = Step::kAlgorithm;
  ChapAlgorithm algorithm_ = ChapAlgorithm::kNone;
  uint8_t identifier_ = 0;
  std::vector<uint8_t> challenge_;
  std::string user_;
  std::string reason_;
  bool answered_ = false;
};

// Overwrites the secrets of an unused copy.
void wipe(lun::ChapCredential* credential);
void wipe(lun::HostAccess* access);
void wipe(ChapPair* pair);

}  // namespace sluice::iscsi
