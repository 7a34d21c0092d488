#include "iscsi/login/login.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "iscsi/login/login_state.h"

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
unsigned current_stage(const pdu::Bhs& header) { return header.flags() >> 2 & 3; }
unsigned next_stage(const pdu::Bhs& header) { return header.flags() & 3; }

void begin_answer(const pdu::Bhs& request, LoginAnswer* answer) {
  *answer = LoginAnswer{};
  answer->header.set_opcode(pdu::Opcode::kLoginResponse);
  std::copy_n(request.data() + kIsidAt, 6, answer->header.data() + kIsidAt);
  answer->header.put16(kTsihAt, request.u16(kTsihAt));
  answer->header.set_itt(request.itt());
}

}  // namespace

Login::State::State(Setup given) : setup(std::move(given)), negotiation(setup.offer) {
  who.tpgt = setup.tpgt;
}

Login::State::~State() { wipe(&access); }

Login::Login(Setup setup) : state_(std::make_unique<State>(std::move(setup))) {}
Login::~Login() = default;

const Parameters& Login::parameters() const { return state_->parameters; }
const std::shared_ptr<lun::Target>& Login::target() const { return state_->target; }
const Origin& Login::origin() const { return state_->origin; }
uint16_t Login::requested_tsih() const { return state_->tsih; }
uint16_t Login::cid() const { return state_->cid; }
uint32_t Login::first_cmd_sn() const { return state_->first_cmd_sn; }
const std::string& Login::initiator() const { return state_->who.initiator_name; }
LoginStatus Login::status() const { return state_->status; }
const std::string& Login::reason() const { return state_->reason; }

void Login::fail(LoginAnswer* answer, LoginStatus status) {
  answer->header.set_flags(0);  // §11.13.5: with a status, T and the stages say nothing
  answer->header.set_data_length(0);
  answer->header.put16(kStatusAt, static_cast<uint16_t>(status));
  answer->text.clear();
}

Login::Outcome Login::on_request(const pdu::Bhs& header, ByteView text, LoginAnswer* answer) {
  if (state_->finished) return Outcome::kDrop;
  begin_answer(header, answer);
  Outcome outcome =
      state_->check_header(header) ? state_->take_request(header, text, answer) : Outcome::kFailed;
  if (outcome == Outcome::kFailed) {
    fail(answer, state_->status);
    if (!state_->moved_to.empty()) {
      append_pair(&answer->text, "TargetAddress", state_->moved_to);
      answer->header.set_data_length(static_cast<uint32_t>(answer->text.size()));
    }
  }
  return outcome;
}

bool Login::State::refuse(LoginStatus why, std::string_view sentence) {
  status = why;
  reason = sentence;
  // An initiator reads "wrong secret"; the log also says what it could not have proven.
  if (why == LoginStatus::kAuthenticationFailure && !refusal.empty()) reason += "; " + refusal;
  finished = true;
  return false;
}

bool Login::State::check_header(const pdu::Bhs& header) {
  if (++pdus > limits::kMaxLoginPdus) {
    return refuse(LoginStatus::kInitiatorError, "the login takes too many PDUs");
  }
  if (header.u8(kVersionMinAt) > kVersion) {
    return refuse(LoginStatus::kUnsupportedVersion,
                  "the initiator supports no version of iSCSI that this target does");
  }
  unsigned csg = current_stage(header);
  unsigned nsg = next_stage(header);
  if (csg != kSecurity && csg != kOperational) {
    return refuse(LoginStatus::kInitiatorError, "the current stage (CSG) is invalid");
  }
  if (wants_transit(header) && continues(header)) {
    return refuse(LoginStatus::kInitiatorError, "the T and C bits are both set");
  }
  if (wants_transit(header) && (nsg <= csg || nsg == 2)) {
    return refuse(LoginStatus::kInitiatorError, "the next stage (NSG) is invalid");
  }
  if (started) return check_constant_fields(header);
  started = true;
  stage = static_cast<Stage>(csg);
  std::copy_n(header.data() + kIsidAt, isid.size(), isid.begin());
  tsih = header.u16(kTsihAt);
  cid = header.u16(kCidAt);
  itt = header.itt();
  first_cmd_sn = header.cmd_sn();
  return true;
}

bool Login::State::check_constant_fields(const pdu::Bhs& header) {
  if (current_stage(header) != stage) {
    return refuse(LoginStatus::kInitiatorError, "the initiator is in another stage than agreed");
  }
  if (!std::equal(isid.begin(), isid.end(), header.data() + kIsidAt) ||
      header.u16(kTsihAt) != tsih || header.u16(kCidAt) != cid || header.itt() != itt) {
    return refuse(LoginStatus::kInitiatorError, "ISID, TSIH, CID or ITT changed during the login");
  }
  return true;
}

Login::Outcome Login::State::take_request(const pdu::Bhs& header, ByteView text,
                                          LoginAnswer* answer) {
  if (sending) {
    // §6.2: while we send with the C bit, the initiator only asks for more.
    if (!text.empty() || continues(header)) {
      refuse(LoginStatus::kInitiatorError, "text came while an answer was still being sent");
      return Outcome::kFailed;
    }
    return send_part(header, answer);
  }
  if (!request.append(text)) {
    refuse(LoginStatus::kInitiatorError, "the login text is too long");
    return Outcome::kFailed;
  }
  if (continues(header)) {  // §6.2: answered with no text until the last part came
    answer->header.set_flags(static_cast<uint8_t>(stage << 2));
    return Outcome::kContinue;
  }
  if (!take_text(header)) return Outcome::kFailed;
  return send_part(header, answer);
}

// One complete request, of however many PDUs: its keys, and our answer to them.
bool Login::State::take_text(const pdu::Bhs& header) {
  response.clear();
  response_sent = 0;
  offered_just_now = false;
  Result<std::vector<TextPair>> pairs = parse_text(request.text());
  if (!pairs) return refuse(LoginStatus::kInitiatorError, pairs.error());
  if (!check_places(*pairs) || !take_identity(*pairs)) return false;
  bool taken = stage == kSecurity ? take_security(*pairs) : take_operational(*pairs);
  if (!taken) return false;
  if (stage == kOperational && wants_transit(header) && !offers_made) {
    offers_made = true;
    negotiation.offer_missing(&response);
    offered_just_now = negotiation.awaiting_answers();
  }
  request.clear();  // pairs pointed into it
  return true;
}

// The next part of the answer, as much as the initiator takes in one PDU. Login uses the default
// segment length even where a longer one was declared.
Login::Outcome Login::State::send_part(const pdu::Bhs& header, LoginAnswer* answer) {
  size_t segment = std::min<size_t>(limits::kMaxLoginSegment,
                                    negotiation.outcome().max_send_data_segment_length);
  size_t size = std::min(segment, response.size() - response_sent);
  answer->text = response.substr(response_sent, size);
  answer->header.set_data_length(static_cast<uint32_t>(size));
  response_sent += size;
  sending = response_sent < response.size();
  auto flags = static_cast<uint8_t>(stage << 2);
  if (sending) flags |= pdu::kFlagContinue;
  answer->header.set_flags(flags);
  if (sending || !wants_transit(header)) return Outcome::kContinue;
  return transit(header, answer);
}

Login::Outcome Login::State::transit(const pdu::Bhs& header, LoginAnswer* answer) {
  if (stage == kSecurity && !leave_security()) {
    return finished ? Outcome::kFailed : Outcome::kContinue;
  }
  if (offered_just_now) return Outcome::kContinue;  // the initiator still has to answer
  auto next = static_cast<Stage>(next_stage(header));
  if (next == kFullFeature) {
    Result<void> agreed = negotiation.finish();
    if (!agreed) {
      refuse(LoginStatus::kInitiatorError, agreed.error());
      return Outcome::kFailed;
    }
  }
  answer->header.set_flags(static_cast<uint8_t>(pdu::kFlagTransit | stage << 2 | next));
  stage = next;
  if (next != kFullFeature) return Outcome::kContinue;
  succeed();
  return Outcome::kSucceeded;
}

// False without refuse(): not yet, the authentication is still under way.
bool Login::State::leave_security() {
  if (authenticated) return true;
  if (chap != nullptr) return false;
  return refuse(LoginStatus::kAuthenticationFailure,
                "the initiator offered no authentication, but CHAP is required");
}

void Login::State::succeed() {
  finished = true;
  parameters = negotiation.outcome();
  parameters.discovery = who.discovery;
  parameters.initiator_name = who.initiator_name;
  parameters.initiator_alias = who.initiator_alias;
  parameters.target_name = who.target_name;
  parameters.isid = isid;
  parameters.tpgt = who.tpgt;
  parameters.auth_method = who.auth_method;
  parameters.auth_user = who.auth_user;
  parameters.mutual_auth = who.mutual_auth;
  parameters.read_only = access.read_only;
  parameters.forwarded_by = origin.gateway;
  parameters.host_age = host_age;
  wipe(&access);
}

}  // namespace sluice::iscsi
