#include "iscsi/login/negotiation.h"

#include <algorithm>
#include <vector>

namespace sluice::iscsi {
namespace {

using Digest = Offer::Digest;

constexpr std::string_view kCrc32c = "CRC32C";
constexpr std::string_view kNone = "None";

Error violation(const KeyRule& rule, std::string_view what) {
  return Error{std::string(rule.name) + " " + std::string(what)};
}

}  // namespace

Negotiation::Negotiation(const Offer& offer) : offer_(offer) {
  constexpr uint32_t kLargest = (1u << 24) - 1;  // RFC 7143 §13.12: 2^24-1
  offer_.max_recv_data_segment_length =
      std::clamp(offer.max_recv_data_segment_length, 512u, std::min(limits::kMaxSegment, kLargest));
  offer_.max_burst_length =
      std::clamp(offer.max_burst_length, 512u, std::min(limits::kMaxBurst, kLargest));
  offer_.first_burst_length = std::clamp(offer.first_burst_length, 512u, offer_.max_burst_length);
  offer_.max_outstanding_r2t =
      std::clamp(offer.max_outstanding_r2t, 1u, limits::kMaxOutstandingR2t);
  for (const KeyRule& rule : all_keys()) entry(rule.key).value = rule.fallback;
  write_outcome();
}

uint32_t Negotiation::our_number(Key key) const {
  switch (key) {
    case Key::kInitialR2T:
      return offer_.initial_r2t;
    case Key::kImmediateData:
      return offer_.immediate_data;
    case Key::kMaxBurstLength:
      return offer_.max_burst_length;
    case Key::kFirstBurstLength:  // §13.14: must not exceed MaxBurstLength
      return std::min(
          {offer_.first_burst_length, offer_.max_burst_length, entry(Key::kMaxBurstLength).value});
    case Key::kDefaultTime2Wait:
      return offer_.default_time2wait;
    case Key::kDefaultTime2Retain:
      return offer_.default_time2retain;
    case Key::kMaxOutstandingR2T:
      return offer_.max_outstanding_r2t;
    case Key::kIscsiProtocolLevel:
      return offer_.protocol_level;
    case Key::kErrorRecoveryLevel:
      return 0;
    default:  // MaxConnections=1; data in order, always
      return 1;
  }
}

Result<void> Negotiation::take(std::span<const TextPair> pairs, std::string* answers) {
  std::vector<std::string> parts(pairs.size());
  // FirstBurstLength is bounded by MaxBurstLength, wherever in the request that stands.
  for (bool bounded : {false, true}) {
    for (size_t i = 0; i < pairs.size(); ++i) {
      if ((pairs[i].key == rule_of(Key::kFirstBurstLength).name) != bounded) continue;
      Result<void> taken = take_one(pairs[i], &parts[i]);
      if (!taken) return taken;
    }
  }
  for (const std::string& part : parts) answers->append(part);
  write_outcome();
  return {};
}

Result<void> Negotiation::take_one(const TextPair& pair, std::string* answer) {
  const KeyRule* rule = find_key(pair.key);
  if (rule == nullptr) {  // §6.2: an answer is owed for keys not understood, private ones too
    append_pair(answer, pair.key, "NotUnderstood");
    return {};
  }
  Entry& it = entry(rule->key);
  if (it.standing == Standing::kSettled) return take_again(*rule, pair.value, answer);
  if (it.standing == Standing::kOffered) return take_answer(*rule, pair.value);
  // §6.2 reserves these values for answers. Nothing was offered, so nothing changes.
  if (reserved_answer(pair.value) != Reserved::kNo) {
    if (rule->rule != Rule::kDeclared) append_pair(answer, pair.key, "Reject");
    return {};
  }
  it.standing = Standing::kSettled;
  if (rule->rule == Rule::kDeclared) return take_declaration(*rule, pair.value);
  append_pair(answer, pair.key, answer_offer(*rule, pair.value));
  return {};
}

// §6.2 forbids initiators to negotiate a key twice. A repetition that changes nothing is harmless
// and passes.
Result<void> Negotiation::take_again(const KeyRule& rule, std::string_view value,
                                     std::string* answer) {
  Entry& it = entry(rule.key);
  const Entry before = it;
  if (rule.rule == Rule::kDeclared) {
    Result<void> taken = take_declaration(rule, value);
    if (!taken) return taken;
  } else if (reserved_answer(value) == Reserved::kNo) {
    append_pair(answer, rule.name, answer_offer(rule, value));
  }
  if (it.value == before.value) return {};
  it = before;
  return violation(rule, "was negotiated twice, with different outcomes");
}

Result<void> Negotiation::take_declaration(const KeyRule& rule, std::string_view value) {
  std::optional<uint64_t> number = parse_number(value);
  if (!number || *number < rule.minimum) return violation(rule, "is outside its range");
  // An initiator that can receive more than the largest length can receive that.
  entry(rule.key).value = static_cast<uint32_t>(std::min<uint64_t>(*number, rule.maximum));
  outcome_.initiator_declared_segment = true;
  return {};
}

std::string Negotiation::answer_offer(const KeyRule& rule, std::string_view value) {
  if (rule.rule == Rule::kObsolete) return "Reject";
  if (rule.rule == Rule::kRefused) return parse_boolean(value) ? "No" : "Reject";
  switch (rule.rule) {
    case Rule::kList:
      return answer_list(rule, value);
    case Rule::kAnd:
    case Rule::kOr:
      return answer_boolean(rule, value);
    default:
      return answer_number(rule, value);
  }
}

// §6.2.1: the first value of the list that we support and may use.
std::string Negotiation::answer_list(const KeyRule& rule, std::string_view value) {
  Digest digest = rule.key == Key::kHeaderDigest ? offer_.header_digest : offer_.data_digest;
  for (std::string_view item : split_list(value)) {
    if (rule.key == Key::kTaskReporting) {
      if (item == "RFC3720") return std::string(item);
      continue;
    }
    if ((item == kCrc32c && digest != Digest::kRefuse) ||
        (item == kNone && digest != Digest::kRequire)) {
      entry(rule.key).value = item == kCrc32c;
      return std::string(item);
    }
  }
  return "Reject";
}

std::string Negotiation::answer_boolean(const KeyRule& rule, std::string_view value) {
  std::optional<bool> theirs = parse_boolean(value);
  if (!theirs) return "Reject";
  bool ours = our_number(rule.key) != 0;
  bool agreed = rule.rule == Rule::kAnd ? *theirs && ours : *theirs || ours;
  entry(rule.key).value = agreed;
  return std::string(boolean_text(agreed));
}

std::string Negotiation::answer_number(const KeyRule& rule, std::string_view value) {
  std::optional<uint64_t> theirs = parse_number(value);
  if (!theirs || *theirs < rule.minimum || *theirs > rule.maximum) return "Reject";
  auto number = static_cast<uint32_t>(*theirs);
  uint32_t ours = our_number(rule.key);
  uint32_t agreed = rule.rule == Rule::kMinimum ? std::min(number, ours) : std::max(number, ours);
  entry(rule.key).value = agreed;
  return std::to_string(agreed);
}

// What the initiator makes of an offer of ours. We offer only what we can't do without, so a
// reserved answer, which leaves the default in force (§6.2), ends the login.
Result<void> Negotiation::take_answer(const KeyRule& rule, std::string_view value) {
  Entry& it = entry(rule.key);
  if (reserved_answer(value) != Reserved::kNo) {
    return violation(rule, "was refused, but the default can't be used");
  }
  bool allowed = false;
  uint32_t agreed = it.offered;
  if (rule.rule == Rule::kList) {
    allowed = value == kCrc32c;
  } else if (rule.rule == Rule::kAnd) {
    allowed = value == "No";
  } else {
    std::optional<uint64_t> number = parse_number(value);
    allowed = number && *number >= rule.minimum && *number <= it.offered;
    if (allowed) agreed = static_cast<uint32_t>(*number);
  }
  if (!allowed) return violation(rule, "was answered with a value that was not offered");
  it.value = agreed;
  it.standing = Standing::kSettled;
  return {};
}

void Negotiation::declare(std::string* answers) {
  outcome_.max_recv_data_segment_length = offer_.max_recv_data_segment_length;
  append_pair(answers, rule_of(Key::kMaxRecvDataSegmentLength).name,
              std::to_string(offer_.max_recv_data_segment_length));
}

void Negotiation::propose(Key key, uint32_t number, std::string* answers) {
  const KeyRule& rule = rule_of(key);
  Entry& it = entry(key);
  it.standing = Standing::kOffered;
  it.offered = number;
  append_pair(answers, rule.name,
              rule.rule == Rule::kList  ? std::string(kCrc32c)
              : rule.rule == Rule::kAnd ? std::string(boolean_text(number != 0))
                                        : std::to_string(number));
}

void Negotiation::offer_missing(std::string* answers) {
  auto open = [this](Key key) { return entry(key).standing == Standing::kOpen; };
  if (open(Key::kHeaderDigest) && offer_.header_digest == Digest::kRequire) {
    propose(Key::kHeaderDigest, 1, answers);
  }
  if (open(Key::kDataDigest) && offer_.data_digest == Digest::kRequire) {
    propose(Key::kDataDigest, 1, answers);
  }
  if (discovery_) return;  // the others are irrelevant there
  if (open(Key::kImmediateData) && !offer_.immediate_data) {
    propose(Key::kImmediateData, 0, answers);
    entry(Key::kImmediateData).value = 0;  // AND: our No decides, whatever the answer
  }
  Entry& burst = entry(Key::kMaxBurstLength);
  if (open(Key::kMaxBurstLength) && burst.value > offer_.max_burst_length) {
    propose(Key::kMaxBurstLength, offer_.max_burst_length, answers);
    burst.value = offer_.max_burst_length;  // it won't be more
  }
  bool unsolicited = entry(Key::kInitialR2T).value == 0 || entry(Key::kImmediateData).value != 0;
  uint32_t first = our_number(Key::kFirstBurstLength);
  if (open(Key::kFirstBurstLength) && unsolicited && entry(Key::kFirstBurstLength).value > first) {
    propose(Key::kFirstBurstLength, first, answers);
  }
}

bool Negotiation::awaiting_answers() const {
  return std::any_of(all_keys().begin(), all_keys().end(), [this](const KeyRule& rule) {
    // §6.2.2: answering an AND of No is optional.
    return entry(rule.key).standing == Standing::kOffered && rule.rule != Rule::kAnd;
  });
}

Result<void> Negotiation::finish() {
  if (awaiting_answers()) return Error{"an offer of ours was left unanswered"};
  for (Key key : {Key::kHeaderDigest, Key::kDataDigest}) {
    Digest want = key == Key::kHeaderDigest ? offer_.header_digest : offer_.data_digest;
    if (want == Digest::kRequire && entry(key).value == 0) {
      return violation(rule_of(key), "CRC32C is required here, but was not agreed to");
    }
  }
  write_outcome();
  if (discovery_) return {};
  bool unsolicited = !outcome_.initial_r2t || outcome_.immediate_data;
  if (!unsolicited) {  // §13.14: FirstBurstLength is then irrelevant
    outcome_.first_burst_length = std::min(outcome_.first_burst_length, outcome_.max_burst_length);
  }
  if (outcome_.first_burst_length > outcome_.max_burst_length) {
    return violation(rule_of(Key::kFirstBurstLength), "exceeds MaxBurstLength");
  }
  for (Key key : {Key::kMaxBurstLength, Key::kFirstBurstLength}) {
    if (entry(key).value > our_number(key) && (unsolicited || key == Key::kMaxBurstLength)) {
      return violation(rule_of(key), "is more than this target accepts");
    }
  }
  if (outcome_.immediate_data && !offer_.immediate_data) {
    return violation(rule_of(Key::kImmediateData), "is refused here");
  }
  return {};
}

void Negotiation::write_outcome() {
  auto value = [this](Key key) { return entry(key).value; };
  outcome_.header_digest = value(Key::kHeaderDigest) != 0;
  outcome_.data_digest = value(Key::kDataDigest) != 0;
  outcome_.max_connections = value(Key::kMaxConnections);
  outcome_.initial_r2t = value(Key::kInitialR2T) != 0;
  outcome_.immediate_data = value(Key::kImmediateData) != 0;
  outcome_.max_send_data_segment_length = value(Key::kMaxRecvDataSegmentLength);
  outcome_.max_burst_length = value(Key::kMaxBurstLength);
  outcome_.first_burst_length = value(Key::kFirstBurstLength);
  outcome_.default_time2wait = value(Key::kDefaultTime2Wait);
  outcome_.default_time2retain = value(Key::kDefaultTime2Retain);
  outcome_.max_outstanding_r2t = value(Key::kMaxOutstandingR2T);
  outcome_.data_pdu_in_order = value(Key::kDataPduInOrder) != 0;
  outcome_.data_sequence_in_order = value(Key::kDataSequenceInOrder) != 0;
  outcome_.error_recovery_level = value(Key::kErrorRecoveryLevel);
  outcome_.protocol_level = value(Key::kIscsiProtocolLevel);
}

}  // namespace sluice::iscsi
