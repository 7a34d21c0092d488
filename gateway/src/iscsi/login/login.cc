#include "iscsi/login/login.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/limits.h"

namespace sluice::iscsi {
namespace {

// Offsets in Login Request and Login Response (RFC 7143 §11.12, §11.13).
constexpr unsigned kVersionMinAt = 3;
constexpr unsigned kIsidAt = 8;
constexpr unsigned kTsihAt = 14;
constexpr unsigned kCidAt = 20;
constexpr unsigned kStatusAt = 36;
// The only version there is: 0x00 (§11.12.4). Both version fields of an answer stay 0 for it.
constexpr uint8_t kVersion = 0;

bool wants_transit(const pdu::Bhs& header) { return header.flags() & pdu::kFlagTransit; }
bool continues(const pdu::Bhs& header) { return header.flags() & pdu::kFlagContinue; }
LoginStage current_stage(const pdu::Bhs& header) {
  return static_cast<LoginStage>(header.flags() >> 2 & 3);
}
LoginStage next_stage(const pdu::Bhs& header) {
  return static_cast<LoginStage>(header.flags() & 3);
}
bool is_stage(LoginStage stage) { return static_cast<unsigned>(stage) != 2; }
// CSG in the flags of an answer.
uint8_t in_stage(LoginStage stage) {
  return static_cast<uint8_t>(static_cast<unsigned>(stage) << 2);
}

void begin_answer(const pdu::Bhs& request, LoginAnswer* answer) {
  *answer = LoginAnswer{};
  answer->header.set_opcode(pdu::Opcode::kLoginResponse);
  std::copy_n(request.data() + kIsidAt, 6, answer->header.data() + kIsidAt);
  answer->header.put16(kTsihAt, request.u16(kTsihAt));
  answer->header.set_itt(request.itt());
}

}  // namespace

Login::Login(Setup setup) : keys_(std::move(setup)) {}

void Login::fail(LoginAnswer* answer, LoginStatus status) {
  answer->header.set_flags(0);  // §11.13.5: with a status, T and the stages say nothing
  answer->header.set_data_length(0);
  answer->header.put16(kStatusAt, static_cast<uint16_t>(status));
  answer->text.clear();
}

Login::Outcome Login::on_request(const pdu::Bhs& header, ByteView text, LoginAnswer* answer) {
  if (state_ == State::kOver) return Outcome::kDrop;
  begin_answer(header, answer);
  const Outcome outcome =
      check_header(header) ? take_request(header, text, answer) : Outcome::kFailed;
  if (outcome == Outcome::kFailed) {
    fail(answer, refusal_.status);
    if (!refusal_.moved_to.empty()) {
      append_pair(&answer->text, "TargetAddress", refusal_.moved_to);
      answer->header.set_data_length(static_cast<uint32_t>(answer->text.size()));
    }
  }
  return outcome;
}

void Login::enter(State to) {
  assert(state_ != State::kOver && to != State::kFirstRequest);
  state_ = to;
}

bool Login::refuse(LoginStatus status, std::string_view reason) {
  return refuse({status, std::string(reason), ""});
}

bool Login::refuse(const LoginRefusal& refusal) {
  refusal_ = refusal;
  enter(State::kOver);
  return false;
}

bool Login::check_header(const pdu::Bhs& header) {
  if (++pdus_ > limits::kMaxLoginPdus) {
    return refuse(LoginStatus::kInitiatorError, "the login takes too many PDUs");
  }
  if (header.u8(kVersionMinAt) > kVersion) {
    return refuse(LoginStatus::kUnsupportedVersion,
                  "the initiator supports no version of iSCSI that this target does");
  }
  const LoginStage csg = current_stage(header);
  const LoginStage nsg = next_stage(header);
  if (csg != LoginStage::kSecurity && csg != LoginStage::kOperational) {
    return refuse(LoginStatus::kInitiatorError, "the current stage (CSG) is invalid");
  }
  if (wants_transit(header) && continues(header)) {
    return refuse(LoginStatus::kInitiatorError, "the T and C bits are both set");
  }
  if (wants_transit(header) && (nsg <= csg || !is_stage(nsg))) {
    return refuse(LoginStatus::kInitiatorError, "the next stage (NSG) is invalid");
  }
  if (state_ != State::kFirstRequest) return check_constant_fields(header);
  enter(State::kRequest);
  stage_ = csg;
  std::copy_n(header.data() + kIsidAt, isid_.size(), isid_.begin());
  tsih_ = header.u16(kTsihAt);
  cid_ = header.u16(kCidAt);
  itt_ = header.itt();
  first_cmd_sn_ = header.cmd_sn();
  return true;
}

bool Login::check_constant_fields(const pdu::Bhs& header) {
  if (current_stage(header) != stage_) {
    return refuse(LoginStatus::kInitiatorError, "the initiator is in another stage than agreed");
  }
  if (!std::equal(isid_.begin(), isid_.end(), header.data() + kIsidAt) ||
      header.u16(kTsihAt) != tsih_ || header.u16(kCidAt) != cid_ || header.itt() != itt_) {
    return refuse(LoginStatus::kInitiatorError, "ISID, TSIH, CID or ITT changed during the login");
  }
  return true;
}

Login::Outcome Login::take_request(const pdu::Bhs& header, ByteView text, LoginAnswer* answer) {
  if (state_ == State::kSendingAnswer) {
    // §6.2: while we send with the C bit, the initiator only asks for more.
    if (!text.empty() || continues(header)) {
      refuse(LoginStatus::kInitiatorError, "text came while an answer was still being sent");
      return Outcome::kFailed;
    }
    return send_part(header, answer);
  }
  if (!request_.append(text)) {
    refuse(LoginStatus::kInitiatorError, "the login text is too long");
    return Outcome::kFailed;
  }
  if (continues(header)) {  // §6.2: answered with no text until the last part came
    answer->header.set_flags(in_stage(stage_));
    return Outcome::kContinue;
  }
  if (!take_text(header)) return Outcome::kFailed;
  return send_part(header, answer);
}

// One complete request, of however many PDUs: its keys, and our answer to them.
bool Login::take_text(const pdu::Bhs& header) {
  answer_sent_ = 0;
  Result<std::vector<TextPair>> pairs = parse_text(request_.text());
  if (!pairs) return refuse(LoginStatus::kInitiatorError, pairs.error());
  if (!keys_.take({stage_, isid_, wants_transit(header)}, *pairs)) return refuse(keys_.refusal());
  request_.clear();  // pairs pointed into it
  return true;
}

// The next part of the answer, as much as the initiator takes in one PDU. Login uses the default
// segment length even where a longer one was declared.
Login::Outcome Login::send_part(const pdu::Bhs& header, LoginAnswer* answer) {
  const std::string& text = keys_.answer();
  const size_t segment = std::min<size_t>(limits::kMaxLoginSegment, keys_.segment_length());
  const size_t size = std::min(segment, text.size() - answer_sent_);
  answer->text = text.substr(answer_sent_, size);
  answer->header.set_data_length(static_cast<uint32_t>(size));
  answer_sent_ += size;
  const bool more = answer_sent_ < text.size();
  enter(more ? State::kSendingAnswer : State::kRequest);
  answer->header.set_flags(in_stage(stage_) | (more ? pdu::kFlagContinue : 0));
  if (more || !wants_transit(header)) return Outcome::kContinue;
  return transit(header, answer);
}

Login::Outcome Login::transit(const pdu::Bhs& header, LoginAnswer* answer) {
  if (stage_ == LoginStage::kSecurity) {
    switch (keys_.leave_security()) {
      case LoginKeys::Security::kUnderWay:
        return Outcome::kContinue;
      case LoginKeys::Security::kRefused:
        refuse(keys_.refusal());
        return Outcome::kFailed;
      case LoginKeys::Security::kDone:
        break;
    }
  }
  if (keys_.awaits_answers()) return Outcome::kContinue;
  const LoginStage next = next_stage(header);
  if (next == LoginStage::kFullFeature && !keys_.finish()) {
    refuse(keys_.refusal());
    return Outcome::kFailed;
  }
  answer->header.set_flags(
      static_cast<uint8_t>(pdu::kFlagTransit | in_stage(stage_) | static_cast<unsigned>(next)));
  stage_ = next;
  if (next != LoginStage::kFullFeature) return Outcome::kContinue;
  parameters_ = keys_.take_parameters();
  enter(State::kOver);
  return Outcome::kSucceeded;
}

}  // namespace sluice::iscsi
