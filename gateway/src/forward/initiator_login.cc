#include "forward/initiator_login.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <optional>

#include "iscsi/login/text.h"

namespace sluice::forward {
namespace {

using iscsi::append_pair;
using iscsi::ChapAlgorithm;
using iscsi::TextPair;

constexpr unsigned kStatus = 36;
constexpr size_t kMaxChallenge = 1024;
// T, CSG and NSG (RFC 7143 §11.12): 0 security, 1 operational, 3 full feature phase.
constexpr uint8_t kSecurityStays = 0x00;
constexpr uint8_t kSecurityEnds = 0x81;
constexpr uint8_t kOperationalEnds = 0x87;

std::string_view value_of(std::span<const TextPair> pairs, std::string_view key) {
  for (const TextPair& pair : pairs) {
    if (pair.key == key) return pair.value;
  }
  return {};
}

}  // namespace

InitiatorLogin::Outcome InitiatorLogin::fail(std::string why) {
  reason_ = std::move(why);
  step_ = Step::kOver;
  return Outcome::kFailed;
}

InitiatorLogin::Request InitiatorLogin::first() {
  Request r{kSecurityStays, {}};
  append_pair(&r.text, "InitiatorName", setup_.initiator_name);
  if (setup_.target_name.empty()) {
    append_pair(&r.text, "SessionType", "Discovery");
  } else {
    append_pair(&r.text, "SessionType", "Normal");
    append_pair(&r.text, "TargetName", setup_.target_name);
    append_pair(&r.text, iscsi::kHostAgeKey, iscsi::host_age_text(setup_.host_age));
  }
  append_pair(&r.text, iscsi::kOriginKey, iscsi::origin_text(setup_.origin));
  append_pair(&r.text, "AuthMethod", "CHAP");
  return r;
}

InitiatorLogin::Outcome InitiatorLogin::on_response(const pdu::Bhs& header, std::string_view text,
                                                    Request* next) {
  status_ = header.u16(kStatus);
  if (status_ != 0) return fail(fmt::format("login status {:04x}", status_));
  const uint8_t expected = step_ == Step::kProof         ? kSecurityEnds
                           : step_ == Step::kOperational ? kOperationalEnds
                                                         : kSecurityStays;
  if (header.flags() != expected) return fail("the login went on to another stage than asked");
  const Result<std::vector<TextPair>> pairs = iscsi::parse_text(text);
  if (!pairs) return fail(pairs.error());
  switch (step_) {
    case Step::kMethod:
      if (value_of(pairs.value(), "AuthMethod") != "CHAP") return fail("CHAP was not agreed to");
      return offer_algorithm(next);
    case Step::kChallenge:
      return prove(pairs.value(), next);
    case Step::kProof:
      return check_proof(pairs.value(), next);
    case Step::kOperational:
      return agree(pairs.value());
    case Step::kOver:
      break;
  }
  return fail("a login response after the last");
}

InitiatorLogin::Outcome InitiatorLogin::offer_algorithm(Request* next) {
  next->flags = kSecurityStays;
  append_pair(&next->text, "CHAP_A", std::to_string(static_cast<int>(ChapAlgorithm::kSha256)));
  step_ = Step::kChallenge;
  return Outcome::kGoOn;
}

InitiatorLogin::Outcome InitiatorLogin::prove(std::span<const TextPair> pairs, Request* next) {
  const auto algorithm = iscsi::parse_number(value_of(pairs, "CHAP_A"));
  const auto identifier = iscsi::parse_number(value_of(pairs, "CHAP_I"));
  const auto challenge = iscsi::parse_binary(value_of(pairs, "CHAP_C"), kMaxChallenge);
  if (algorithm != static_cast<uint64_t>(ChapAlgorithm::kSha256) || !identifier ||
      *identifier > 255 || !challenge || challenge->empty()) {
    return fail("the CHAP challenge is malformed");
  }
  const std::vector<uint8_t> response =
      iscsi::chap_response(ChapAlgorithm::kSha256, static_cast<uint8_t>(*identifier),
                           setup_.key.expected.secret, *challenge);
  setup_.random(&identifier_, 1);
  setup_.random(challenge_.data(), challenge_.size());
  next->flags = kSecurityEnds;
  append_pair(&next->text, "CHAP_N", setup_.key.expected.user);
  append_pair(&next->text, "CHAP_R", iscsi::binary_text(response));
  append_pair(&next->text, "CHAP_I", std::to_string(identifier_));
  append_pair(&next->text, "CHAP_C", iscsi::binary_text(challenge_));
  step_ = Step::kProof;
  return Outcome::kGoOn;
}

InitiatorLogin::Outcome InitiatorLogin::check_proof(std::span<const TextPair> pairs,
                                                    Request* next) {
  const std::vector<uint8_t> right = iscsi::chap_response(ChapAlgorithm::kSha256, identifier_,
                                                          setup_.key.mutual.secret, challenge_);
  const auto response = iscsi::parse_binary(value_of(pairs, "CHAP_R"), right.size());
  const bool same = !right.empty() && response && response->size() == right.size() &&
                    CRYPTO_memcmp(response->data(), right.data(), right.size()) == 0;
  if (!same || value_of(pairs, "CHAP_N") != setup_.key.mutual.user) {
    return fail("the peer can't prove that it knows the forwarding key");
  }
  const iscsi::Offer& o = setup_.offer;
  next->flags = kOperationalEnds;
  std::string* text = &next->text;
  const bool digests = o.header_digest == iscsi::Offer::Digest::kRequire;
  append_pair(text, "HeaderDigest", digests ? "CRC32C,None" : "None,CRC32C");
  append_pair(text, "DataDigest", digests ? "CRC32C,None" : "None,CRC32C");
  append_pair(text, "MaxRecvDataSegmentLength", std::to_string(o.max_recv_data_segment_length));
  if (!setup_.target_name.empty()) {
    append_pair(text, "InitialR2T", "No");
    append_pair(text, "ImmediateData", "Yes");
    append_pair(text, "MaxBurstLength", std::to_string(o.max_burst_length));
    append_pair(text, "FirstBurstLength", std::to_string(o.first_burst_length));
    append_pair(text, "MaxOutstandingR2T", std::to_string(o.max_outstanding_r2t));
    append_pair(text, "MaxConnections", "1");
    append_pair(text, "ErrorRecoveryLevel", "0");
    append_pair(text, "DefaultTime2Wait", "0");
    append_pair(text, "DefaultTime2Retain", "0");
  }
  step_ = Step::kOperational;
  return Outcome::kGoOn;
}

InitiatorLogin::Outcome InitiatorLogin::agree(std::span<const TextPair> pairs) {
  iscsi::Parameters& p = parameters_;
  const auto number = [&](std::string_view key, uint32_t fallback) {
    const auto value = iscsi::parse_number(value_of(pairs, key));
    return value && *value >= 512 && *value < (1u << 24) ? static_cast<uint32_t>(*value) : fallback;
  };
  p.header_digest = value_of(pairs, "HeaderDigest") == "CRC32C";
  p.data_digest = value_of(pairs, "DataDigest") == "CRC32C";
  p.immediate_data = value_of(pairs, "ImmediateData") == "Yes";
  p.max_recv_data_segment_length = setup_.offer.max_recv_data_segment_length;
  p.max_send_data_segment_length = number("MaxRecvDataSegmentLength", 8192);
  p.max_burst_length = number("MaxBurstLength", 262144);
  p.first_burst_length = number("FirstBurstLength", 65536);
  step_ = Step::kOver;
  return Outcome::kDone;
}

}  // namespace sluice::forward
