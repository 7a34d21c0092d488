#include "iscsi/login/login_keys.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/safety_mutation.h"
#include "iscsi/login/forwarder.h"
#include "iscsi/login/keys.h"
#include "iscsi/login/names.h"
#include "iscsi/login/session_admission.h"
#include "iscsi/session_directory.h"
#include "nexus/login_access.h"

namespace sluice::iscsi {
namespace {

constexpr size_t kMaxAlias = 255;  // bytes, RFC 7143 §13.6

bool is_identity(Key key) {
  return key == Key::kInitiatorName || key == Key::kTargetName || key == Key::kSessionType ||
         key == Key::kInitiatorAlias;
}

const TextPair* find_pair(std::span<const TextPair> pairs, Key key) {
  auto it = std::find_if(pairs.begin(), pairs.end(),
                         [&](const TextPair& pair) { return pair.key == rule_of(key).name; });
  return it == pairs.end() ? nullptr : &*it;
}

// Keys that only a target declares; an initiator may but say that it doesn't know them.
bool is_targets_own(const KeyRule& rule) { return rule.senders == kByTarget; }

std::string sentence(std::string_view key, std::string_view what) {
  return std::string(key) + " " + std::string(what);
}

}  // namespace

LoginKeys::LoginKeys(LoginSetup setup) : setup_(std::move(setup)), negotiation_(setup_.offer) {
  who_.tpgt = setup_.tpgt;
}

LoginKeys::~LoginKeys() { wipe(&access_); }

bool LoginKeys::refuse(LoginStatus status, std::string_view reason) {
  return refuse({status, std::string(reason), ""});
}

bool LoginKeys::refuse(LoginRefusal refusal) {
  refusal_ = std::move(refusal);
  // An initiator reads "wrong secret"; the log also says what it could not have proven.
  if (refusal_.status == LoginStatus::kAuthenticationFailure && !denial_.empty()) {
    refusal_.reason += "; " + denial_;
  }
  return false;
}

bool LoginKeys::take(const Request& request, std::span<const TextPair> pairs) {
  request_ = request;
  answer_.clear();
  if (offers_ == Offers::kInLastAnswer) offers_ = Offers::kMade;
  if (!check_key_use(pairs) || !take_identity(pairs)) return false;
  const bool security = request.stage == LoginStage::kSecurity;
  if (!(security ? take_security(pairs) : take_operational(pairs))) return false;
  if (!security && request.wants_transit && offers_ == Offers::kNotMade) make_offers();
  return true;
}

void LoginKeys::make_offers() {
  negotiation_.offer_missing(&answer_);
  offers_ = negotiation_.awaiting_answers() ? Offers::kInLastAnswer : Offers::kMade;
}

// Who may send a key, and in which stage (RFC 7143 §12.1, §13: "Use", "Senders").
bool LoginKeys::check_key_use(std::span<const TextPair> pairs) {
  uint8_t here = request_.stage == LoginStage::kSecurity ? kInSecurity : kInOperational;
  for (const TextPair& pair : pairs) {
    const KeyRule* rule = find_key(pair.key);
    if (rule == nullptr) continue;
    if (is_targets_own(*rule)) {
      // LIO gives the same answer. The key has no effect, so the login goes on.
      if (reserved_answer(pair.value) == Reserved::kNo) {
        append_pair(&answer_, pair.key, "NotUnderstood");
      }
      continue;
    }
    if (rule->rule == Rule::kQuestion) {  // SendTargets belongs to full feature phase
      append_pair(&answer_, pair.key, "NotUnderstood");
      continue;
    }
    if ((rule->stages & here) == 0 && !may_come_elsewhere(*rule)) {
      return refuse(LoginStatus::kInitiatorError,
                    sentence(pair.key, "may not be sent in this stage"));
    }
  }
  return true;
}

// The gateway accepts an operational key in the security stage and AuthMethod in the operational
// stage. The late AuthMethod can't begin an authentication (take_late_method()).
bool LoginKeys::may_come_elsewhere(const KeyRule& rule) const {
  return request_.stage == LoginStage::kSecurity ? (rule.stages & kInOperational) != 0
                                                 : rule.key == Key::kAuthMethod;
}

bool LoginKeys::take_identity(std::span<const TextPair> pairs) {
  if (initiator_ == Initiator::kUnknown) return take_first_identity(pairs);
  return std::all_of(pairs.begin(), pairs.end(),
                     [this](const TextPair& pair) { return check_repeated_identity(pair); });
}

// §6.3.1: the first request says who comes, to whom, and for what.
bool LoginKeys::take_first_identity(std::span<const TextPair> pairs) {
  const TextPair* name = find_pair(pairs, Key::kInitiatorName);
  if (name == nullptr) {
    return refuse(LoginStatus::kMissingParameter, "the initiator gave no InitiatorName");
  }
  Result<std::string> initiator = normalise_name(name->value);
  if (!initiator) {
    constexpr size_t kShown = 223;  // bytes: the longest name (§4.2.7.1); the log escapes it
    return refuse(LoginStatus::kInitiatorError, "InitiatorName '" +
                                                    std::string(name->value.substr(0, kShown)) +
                                                    (name->value.size() > kShown ? "...'" : "'") +
                                                    " is malformed: " + initiator.error());
  }
  who_.initiator_name = *initiator;
  if (const TextPair* type = find_pair(pairs, Key::kSessionType)) {
    who_.discovery = type->value == "Discovery";
    if (!who_.discovery && type->value != "Normal") {
      return refuse(LoginStatus::kSessionTypeNotSupported,
                    "SessionType is neither Normal nor Discovery");
    }
  }
  if (const TextPair* alias = find_pair(pairs, Key::kInitiatorAlias)) {
    if (!check_repeated_identity(*alias)) return false;
  }
  initiator_ = Initiator::kIdentified;
  negotiation_.set_discovery(who_.discovery);
  const TextPair* wanted = find_pair(pairs, Key::kTargetName);
  if (!who_.discovery && wanted == nullptr) {
    return refuse(LoginStatus::kMissingParameter, "a normal session was asked without TargetName");
  }
  if (!admit_gateway(pairs)) return false;
  const bool named = who_.discovery || normalise_target(wanted->value);
  if (!named) return false;
  const bool gateway = setup_.forwarding != nullptr;
  if (!gateway) find_access();
  const bool trusted = !gateway && (!access_.chap.configured() || mutation_disables(Guard::kChap));
  if (trusted) initiator_ = Initiator::kAuthenticated;
  if (trusted && !enter()) return false;
  if (request_.stage == LoginStage::kOperational && !trusted) {
    return refuse(LoginStatus::kAuthenticationFailure,
                  "the initiator skipped the security stage, but CHAP is required");
  }
  if (!who_.discovery) {  // §13.9: in the first answer of a normal session
    append_pair(&answer_, rule_of(Key::kTargetPortalGroupTag).name, std::to_string(setup_.tpgt));
  }
  return true;
}

// §6.3.1 forbids declaring a key twice, but libiscsi repeats the names in the operational stage:
// the same value again changes nothing and passes.
bool LoginKeys::check_repeated_identity(const TextPair& pair) {
  const KeyRule* rule = find_key(pair.key);
  if (rule == nullptr || !is_identity(rule->key)) return true;
  bool same = false;
  if (rule->key == Key::kSessionType) {
    same = pair.value == (who_.discovery ? "Discovery" : "Normal");
  } else if (rule->key == Key::kInitiatorAlias) {
    // It is for people only: the newest counts, as much of it as §13.7 allows.
    who_.initiator_alias = pair.value.substr(0, kMaxAlias);
    same = true;
  } else {
    Result<std::string> name = normalise_name(pair.value);
    const std::string& known =
        rule->key == Key::kInitiatorName ? who_.initiator_name : who_.target_name;
    // In a discovery session TargetName says nothing (§13.4).
    same = name.ok() && (*name == known || (who_.discovery && rule->key == Key::kTargetName));
  }
  if (same) return true;
  return refuse(LoginStatus::kInitiatorError, sentence(pair.key, "changed during the login"));
}

bool LoginKeys::normalise_target(std::string_view name) {
  Result<std::string> wanted = normalise_name(name);
  if (!wanted) {
    return refuse(LoginStatus::kInitiatorError, "TargetName is malformed: " + wanted.error());
  }
  who_.target_name = *wanted;
  return true;
}

// What a host must prove. It learns what becomes of the login in enter(), when it has proven that.
void LoginKeys::find_access() {
  std::optional<std::string_view> wanted;
  if (!who_.discovery) wanted = who_.target_name;
  lun::LoginAccess found = lun::login_access(*setup_.exports, who_.initiator_name, wanted);
  access_ = std::move(found.host);
  target_ = found.admitted ? std::move(found.target) : nullptr;
  admitted_ = found.admitted;
  denial_ = std::move(found.why);
  if (found.provable) return;
  // The exchange is that of a host with a wrong secret. This user and secret fit no response.
  std::array<uint8_t, 32> unguessable{};
  for (std::string* part : {&access_.chap.user, &access_.chap.secret}) {
    setup_.random(unguessable.data(), unguessable.size());
    part->assign(as_text(unguessable));
  }
}

// The initiator has proven what it must: the target is looked at, for the first time.
bool LoginKeys::enter() {
  if (setup_.forwarding != nullptr) {
    if (who_.discovery) return true;
    // The origin has authenticated the host. SessionAccess checks the host's access after
    // the origin is authenticated, so that other peers can't find out which hosts exist.
    access_.read_only = forwarder_.origin.read_only;
    target_ = setup_.exports->find(who_.target_name);
    if (target_ != nullptr) return true;
    return refuse(LoginStatus::kNotFound, "there is no target " + who_.target_name + " here");
  }
  if (!admitted_) {
    return refuse(who_.discovery ? LoginStatus::kAuthorizationFailure : LoginStatus::kNotFound,
                  denial_);
  }
  if (who_.discovery) return true;
  const SessionKey key{who_.initiator_name, request_.isid, who_.target_name, setup_.tpgt};
  LoginRefusal refusal = admit_session(access_, key, setup_.sessions);
  return refusal.status == LoginStatus::kSuccess || refuse(std::move(refusal));
}

// Gateways come in by the forwarding port, hosts by the others.
bool LoginKeys::admit_gateway(std::span<const TextPair> pairs) {
  if (setup_.forwarding == nullptr) {
    if (!names_origin(pairs)) return true;
    return refuse(LoginStatus::kInitiatorError, "a gateway came to a portal that is for hosts");
  }
  LoginRefusal refusal = read_forwarder(*setup_.forwarding, pairs, &forwarder_);
  if (refusal.status != LoginStatus::kSuccess) return refuse(std::move(refusal));
  who_.tpgt = forwarder_.origin.tpgt;
  return true;
}

bool LoginKeys::take_security(std::span<const TextPair> pairs) {
  std::vector<TextPair> early;
  for (const TextPair& pair : pairs) {
    const KeyRule* rule = find_key(pair.key);
    if (rule != nullptr && (rule->stages & kInAnyLogin) == kInOperational) early.push_back(pair);
    if (rule == nullptr) {
      const bool of_gateways =
          setup_.forwarding != nullptr && (pair.key == kOriginKey || pair.key == kHostAgeKey);
      if (!of_gateways) append_pair(&answer_, pair.key, "NotUnderstood");
    } else if (rule->key == Key::kAuthMethod && !choose_method(pair.value)) {
      return false;
    }
  }
  if (!early.empty()) {
    Result<void> taken = negotiation_.take(early, &answer_);
    if (!taken) return refuse(LoginStatus::kInitiatorError, taken.error());
  }
  return run_chap(pairs);
}

// §12.1: the first method of the initiator's list that is configured for it: CHAP if it is
// configured, else None.
bool LoginKeys::choose_method(std::string_view offered) {
  // A repetition never restarts an authentication.
  if (chap_ != nullptr) {
    return refuse(LoginStatus::kInitiatorError, "AuthMethod was negotiated twice");
  }
  const bool gateway = setup_.forwarding != nullptr;
  bool required = gateway || (access_.chap.configured() && !mutation_disables(Guard::kChap));
  std::string_view wanted = required ? "CHAP" : "None";
  std::vector<std::string_view> methods = split_list(offered);
  if (std::find(methods.begin(), methods.end(), wanted) == methods.end()) {
    return refuse(LoginStatus::kAuthenticationFailure,
                  required ? "CHAP is required, but the initiator doesn't offer it"
                           : "the initiator insists on an authentication that is not configured");
  }
  append_pair(&answer_, rule_of(Key::kAuthMethod).name, wanted);
  if (gateway) {
    // The peers may have changed since admit_gateway().
    std::vector<ChapPair> keys =
        setup_.forwarding->credentials_of(forwarder_.origin.gateway, forwarder_.origin.incarnation);
    if (keys.empty()) {
      return refuse(LoginStatus::kAuthenticationFailure, "the gateway is no longer a peer");
    }
    chap_ = std::make_unique<Chap>(std::move(keys), ChapAlgorithm::kSha256);
  } else if (required) {
    chap_ = std::make_unique<Chap>(access_.chap, access_.mutual);
  }
  return true;
}

// AuthMethod in the operational stage. Initiators that skip the security stage may send it there.
// take_first_identity() has refused every login that skipped a required authentication.
bool LoginKeys::take_late_method(std::string_view offered) {
  if (chap_ != nullptr || !authenticated()) {
    return refuse(LoginStatus::kInitiatorError, "AuthMethod may not be sent in this stage");
  }
  return choose_method(offered);
}

bool LoginKeys::run_chap(std::span<const TextPair> pairs) {
  if (chap_ == nullptr) {
    bool security = std::any_of(pairs.begin(), pairs.end(), [](const TextPair& pair) {
      const KeyRule* rule = find_key(pair.key);
      return rule != nullptr && rule->rule == Rule::kSecurity;
    });
    if (!security) return true;
    return refuse(LoginStatus::kInitiatorError, "CHAP keys came without AuthMethod=CHAP");
  }
  const bool responds = std::any_of(pairs.begin(), pairs.end(),
                                    [](const TextPair& pair) { return pair.key == "CHAP_R"; });
  if (responds && setup_.forwarding == nullptr && setup_.may_try &&
      !setup_.may_try(who_.initiator_name)) {
    return refuse(LoginStatus::kAuthenticationFailure,
                  "too many attempts have failed: the CHAP response was not evaluated");
  }
  switch (chap_->step(pairs, setup_.random, &answer_)) {
    case Chap::Verdict::kGoOn:
      return true;
    case Chap::Verdict::kProven:
      if (setup_.forwarding != nullptr && !chap_->mutual()) {
        return refuse(LoginStatus::kAuthenticationFailure,
                      "a gateway must ask for mutual authentication");
      }
      initiator_ = Initiator::kAuthenticated;
      who_.auth_method = "CHAP";
      who_.auth_user = chap_->user();
      who_.mutual_auth = chap_->mutual();
      return enter();
    case Chap::Verdict::kRefused:
      return refuse(LoginStatus::kAuthenticationFailure, chap_->reason());
    case Chap::Verdict::kViolation:
      break;
  }
  return refuse(LoginStatus::kInitiatorError, chap_->reason());
}

bool LoginKeys::take_operational(std::span<const TextPair> pairs) {
  std::vector<TextPair> negotiated;
  for (const TextPair& pair : pairs) {
    const KeyRule* rule = find_key(pair.key);
    if (rule != nullptr && rule->key == Key::kAuthMethod) {
      if (!take_late_method(pair.value)) return false;
    } else if (rule == nullptr || (!is_identity(rule->key) && !is_targets_own(*rule) &&
                                   rule->rule != Rule::kQuestion)) {
      negotiated.push_back(pair);
    }
  }
  Result<void> taken = negotiation_.take(negotiated, &answer_);
  if (!taken) return refuse(LoginStatus::kInitiatorError, taken.error());
  if (!declared_) {
    declared_ = true;
    if (target_ != nullptr && !target_->alias().empty()) {
      append_pair(&answer_, rule_of(Key::kTargetAlias).name,
                  std::string_view(target_->alias()).substr(0, kMaxAlias));
    }
    negotiation_.declare(&answer_);
  }
  return true;
}

LoginKeys::Security LoginKeys::leave_security() {
  if (authenticated()) return Security::kDone;
  if (chap_ != nullptr) return Security::kUnderWay;
  refuse(LoginStatus::kAuthenticationFailure,
         "the initiator offered no authentication, but CHAP is required");
  return Security::kRefused;
}

bool LoginKeys::finish() {
  const Result<void> agreed = negotiation_.finish();
  return agreed.ok() || refuse(LoginStatus::kInitiatorError, agreed.error());
}

Parameters LoginKeys::take_parameters() {
  Parameters p = negotiation_.outcome();
  p.discovery = who_.discovery;
  p.initiator_name = who_.initiator_name;
  p.initiator_alias = who_.initiator_alias;
  p.target_name = who_.target_name;
  p.isid = request_.isid;
  p.tpgt = who_.tpgt;
  p.auth_method = who_.auth_method;
  p.auth_user = who_.auth_user;
  p.mutual_auth = who_.mutual_auth;
  p.read_only = access_.read_only;
  p.forwarded_by = forwarder_.origin.gateway;
  p.host_age = forwarder_.host_age;
  wipe(&access_);
  return p;
}

}  // namespace sluice::iscsi
