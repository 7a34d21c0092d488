#include "iscsi/login/text_exchange.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "iscsi/login/keys.h"
#include "iscsi/login/send_targets.h"
#include "iscsi/login/text.h"

namespace sluice::iscsi {
namespace {

using pdu::RejectReason;

constexpr size_t kMaxAlias = 255;  // bytes, RFC 7143 §13.7

TextExchange::Answer rejected(RejectReason reason) {
  TextExchange::Answer answer;
  answer.kind = TextExchange::Answer::Kind::kReject;
  answer.reason = reason;
  return answer;
}

}  // namespace

struct TextExchange::State {
  explicit State(Context given) : context(std::move(given)) {}

  std::optional<RejectReason> check(const pdu::Bhs& header, ByteView text);
  bool take_keys(std::span<const TextPair> pairs);
  bool take_known(const KeyRule& rule, std::string_view value);
  bool take_segment_length(const KeyRule& rule, std::string_view value);
  Answer next_part(const pdu::Bhs& header);
  void commit();
  void forget();

  Context context;
  TextCollector request;
  uint32_t tag = pdu::kReservedTag;  // TTT of the exchange under way
  uint32_t last_tag = 0;
  uint32_t itt = 0;
  unsigned keys_taken = 0;  // in the whole exchange
  uint64_t keys_seen = 0;   // bit per Key
  bool answering = false;   // parts of the answer are still to come
  std::string response;
  SendTargets targets;
  // What the exchange declares, in force when it ends.
  std::optional<uint32_t> segment_length;
  std::optional<std::string> alias;
};

TextExchange::TextExchange(Context context) : state_(std::make_unique<State>(std::move(context))) {}
TextExchange::~TextExchange() = default;

void TextExchange::reset() { state_->forget(); }

void TextExchange::State::forget() {
  request.clear();
  tag = pdu::kReservedTag;
  keys_taken = 0;
  keys_seen = 0;
  answering = false;
  response.clear();
  targets = SendTargets();
  segment_length.reset();
  alias.reset();
}

TextExchange::Answer TextExchange::on_request(const pdu::Bhs& header, ByteView text) {
  State& state = *state_;
  std::optional<RejectReason> wrong = state.check(header, text);
  if (!wrong && !state.answering && !state.request.append(text)) {
    wrong = RejectReason::kProtocolError;  // longer than limits::kMaxTextBytes
  }
  bool complete = !(header.flags() & pdu::kFlagContinue);
  if (!wrong && !state.answering && complete) {
    Result<std::vector<TextPair>> pairs = parse_text(state.request.text());
    if (!pairs || !state.take_keys(*pairs)) wrong = RejectReason::kProtocolError;
    state.request.clear();
  }
  if (!wrong) return state.next_part(header);
  state.forget();
  return rejected(*wrong);
}

// RFC 7143 §11.10: flags, and which exchange the request belongs to.
std::optional<RejectReason> TextExchange::State::check(const pdu::Bhs& header, ByteView text) {
  bool continues = header.flags() & pdu::kFlagContinue;
  if (header.final() && continues) return RejectReason::kProtocolError;
  if (header.target_transfer_tag() == pdu::kReservedTag) {
    forget();  // §11.10.4: a new exchange ends the one before
    itt = header.itt();
    return std::nullopt;
  }
  if (tag != header.target_transfer_tag() || itt != header.itt()) {
    return RejectReason::kInvalidPduField;
  }
  // §6.2: while we send with the C bit, the initiator only asks for more.
  if (answering && (!text.empty() || continues)) return RejectReason::kProtocolError;
  return std::nullopt;
}

bool TextExchange::State::take_keys(std::span<const TextPair> pairs) {
  keys_taken += static_cast<unsigned>(pairs.size());
  if (keys_taken > limits::kMaxKeysPerExchange) return false;
  for (const TextPair& pair : pairs) {
    const KeyRule* rule = find_key(pair.key);
    if (rule == nullptr) {
      append_pair(&response, pair.key, "NotUnderstood");
      continue;
    }
    uint64_t bit = uint64_t{1} << static_cast<unsigned>(rule->key);
    if ((keys_seen & bit) != 0) return false;  // §6.2: negotiated twice
    keys_seen |= bit;
    if (!take_known(*rule, pair.value)) return false;
  }
  return true;
}

bool TextExchange::State::take_known(const KeyRule& rule, std::string_view value) {
  switch (rule.key) {
    case Key::kSendTargets:
      if (!targets.ask(*context.exports, *context.parameters, value, context.local_address)) {
        append_pair(&response, rule.name, "Reject");
      }
      return true;
    case Key::kMaxRecvDataSegmentLength:
      return take_segment_length(rule, value);
    case Key::kInitiatorAlias:
      alias = std::string(value.substr(0, kMaxAlias));  // it is for people only
      return true;
    default:
      // Settled by the login (§13: use IO or LO), obsolete, or the target's own.
      if (rule.senders != kByTarget || reserved_answer(value) == Reserved::kNo) {
        append_pair(&response, rule.name, "Reject");
      }
      return true;
  }
}

bool TextExchange::State::take_segment_length(const KeyRule& rule, std::string_view value) {
  std::optional<uint64_t> length = parse_number(value);
  if (!length || *length < rule.minimum) return false;
  segment_length = static_cast<uint32_t>(std::min<uint64_t>(*length, rule.maximum));
  return true;
}

void TextExchange::State::commit() {
  if (segment_length) {
    context.parameters->max_send_data_segment_length = *segment_length;
    context.parameters->initiator_declared_segment = true;
  }
  if (alias) context.parameters->initiator_alias = *alias;
}

// As much of the answer as one PDU takes: by what the initiator had declared before this exchange.
TextExchange::Answer TextExchange::State::next_part(const pdu::Bhs& header) {
  Answer answer;
  size_t segment = context.parameters->max_send_data_segment_length;
  segment = std::min<size_t>(segment, limits::kMaxTextBytes);
  bool complete = !(header.flags() & pdu::kFlagContinue);
  if (complete) targets.append(&response, segment + 1);
  answer.text = response.substr(0, segment);
  response.erase(0, answer.text.size());
  answering = complete && (!response.empty() || !targets.done());

  uint8_t flags = answering ? pdu::kFlagContinue : 0;
  // §11.11.1: the Final bit only answers a Final bit, and ends the exchange.
  bool ends = complete && !answering && header.final();
  if (ends) flags = pdu::kFlagFinal;
  if (!ends && tag == pdu::kReservedTag) {
    last_tag = last_tag == pdu::kReservedTag - 1 ? 1 : last_tag + 1;
    tag = last_tag;
  }
  answer.header.set_opcode(pdu::Opcode::kTextResponse);
  answer.header.set_flags(flags);
  answer.header.set_data_length(static_cast<uint32_t>(answer.text.size()));
  answer.header.set_itt(header.itt());
  answer.header.set_target_transfer_tag(ends ? pdu::kReservedTag : tag);
  if (ends) {
    commit();
    forget();
  }
  return answer;
}

}  // namespace sluice::iscsi
