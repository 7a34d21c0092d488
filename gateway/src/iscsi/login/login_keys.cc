// What the keys of a login request mean: who the initiator is, whom it wants, how it proves itself
// and what it negotiates.
#include <algorithm>
#include <optional>

#include "base/safety_mutation.h"
#include "iscsi/login/keys.h"
#include "iscsi/login/login_state.h"
#include "iscsi/login/names.h"
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

// Who may send a key, and in which stage (RFC 7143 §12.1, §13: "Use", "Senders").
bool Login::State::check_places(std::span<const TextPair> pairs) {
  uint8_t here = stage == kSecurity ? kInSecurity : kInOperational;
  for (const TextPair& pair : pairs) {
    const KeyRule* rule = find_key(pair.key);
    if (rule == nullptr) continue;
    if (is_targets_own(*rule)) {
      // LIO gives the same answer. The key has no effect, so the login goes on.
      if (reserved_answer(pair.value) == Reserved::kNo) {
        append_pair(&response, pair.key, "NotUnderstood");
      }
      continue;
    }
    if (rule->rule == Rule::kQuestion) {  // SendTargets belongs to full feature phase
      append_pair(&response, pair.key, "NotUnderstood");
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
bool Login::State::may_come_elsewhere(const KeyRule& rule) const {
  return stage == kSecurity ? (rule.stages & kInOperational) != 0 : rule.key == Key::kAuthMethod;
}

bool Login::State::take_identity(std::span<const TextPair> pairs) {
  if (!identified) return take_first_identity(pairs);
  return std::all_of(pairs.begin(), pairs.end(),
                     [this](const TextPair& pair) { return check_repeated_identity(pair); });
}

// §6.3.1: the first request says who comes, to whom, and for what.
bool Login::State::take_first_identity(std::span<const TextPair> pairs) {
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
  who.initiator_name = *initiator;
  if (const TextPair* type = find_pair(pairs, Key::kSessionType)) {
    who.discovery = type->value == "Discovery";
    if (!who.discovery && type->value != "Normal") {
      return refuse(LoginStatus::kSessionTypeNotSupported,
                    "SessionType is neither Normal nor Discovery");
    }
  }
  if (const TextPair* alias = find_pair(pairs, Key::kInitiatorAlias)) {
    if (!check_repeated_identity(*alias)) return false;
  }
  identified = true;
  negotiation.set_discovery(who.discovery);
  const TextPair* wanted = find_pair(pairs, Key::kTargetName);
  if (!who.discovery && wanted == nullptr) {
    return refuse(LoginStatus::kMissingParameter, "a normal session was asked without TargetName");
  }
  if (!admit_gateway(pairs)) return false;
  const bool named = who.discovery || normalise_target(wanted->value);
  if (!named) return false;
  const bool gateway = setup.forwarding != nullptr;
  if (!gateway) find_access();
  authenticated = !gateway && (!access.chap.configured() || mutation_disables(Guard::kChap));
  if (authenticated && !enter()) return false;
  if (stage == kOperational && !authenticated) {
    return refuse(LoginStatus::kAuthenticationFailure,
                  "the initiator skipped the security stage, but CHAP is required");
  }
  if (!who.discovery) {  // §13.9: in the first answer of a normal session
    append_pair(&response, rule_of(Key::kTargetPortalGroupTag).name, std::to_string(setup.tpgt));
  }
  return true;
}

// §6.3.1 forbids declaring a key twice, but libiscsi repeats the names in the operational stage:
// the same value again changes nothing and passes.
bool Login::State::check_repeated_identity(const TextPair& pair) {
  const KeyRule* rule = find_key(pair.key);
  if (rule == nullptr || !is_identity(rule->key)) return true;
  bool same = false;
  if (rule->key == Key::kSessionType) {
    same = pair.value == (who.discovery ? "Discovery" : "Normal");
  } else if (rule->key == Key::kInitiatorAlias) {
    // It is for people only: the newest counts, as much of it as §13.7 allows.
    who.initiator_alias = pair.value.substr(0, kMaxAlias);
    same = true;
  } else {
    Result<std::string> name = normalise_name(pair.value);
    const std::string& known =
        rule->key == Key::kInitiatorName ? who.initiator_name : who.target_name;
    // In a discovery session TargetName says nothing (§13.4).
    same = name.ok() && (*name == known || (who.discovery && rule->key == Key::kTargetName));
  }
  if (same) return true;
  return refuse(LoginStatus::kInitiatorError, sentence(pair.key, "changed during the login"));
}

bool Login::State::normalise_target(std::string_view name) {
  Result<std::string> wanted = normalise_name(name);
  if (!wanted) {
    return refuse(LoginStatus::kInitiatorError, "TargetName is malformed: " + wanted.error());
  }
  who.target_name = *wanted;
  return true;
}

// What a host must prove. It learns what becomes of the login in enter(), when it has proven that.
void Login::State::find_access() {
  std::optional<std::string_view> wanted;
  if (!who.discovery) wanted = who.target_name;
  lun::LoginAccess found = lun::login_access(*setup.exports, who.initiator_name, wanted);
  access = std::move(found.host);
  target = found.admitted ? std::move(found.target) : nullptr;
  admitted = found.admitted;
  refusal = std::move(found.why);
  if (found.provable) return;
  // The exchange is that of a host with a wrong secret. This user and secret fit no response.
  std::array<uint8_t, 32> unguessable{};
  for (std::string* part : {&access.chap.user, &access.chap.secret}) {
    setup.random(unguessable.data(), unguessable.size());
    part->assign(as_text(unguessable));
  }
}

// The initiator has proven what it must: the target is looked at, for the first time.
bool Login::State::enter() {
  if (setup.forwarding != nullptr) {
    if (who.discovery) return true;
    // The origin has authenticated the host. SessionAccess checks the host's access after
    // the origin is authenticated, so that other peers can't find out which hosts exist.
    access.read_only = origin.read_only;
    target = setup.exports->find(who.target_name);
    if (target != nullptr) return true;
    return refuse(LoginStatus::kNotFound, "there is no target " + who.target_name + " here");
  }
  if (!admitted) {
    return refuse(who.discovery ? LoginStatus::kAuthorizationFailure : LoginStatus::kNotFound,
                  refusal);
  }
  return who.discovery || (belongs_here() && has_room());
}

// Portals of a host that the control plane has balanced. The portal group tag tells them apart, in
// all of the path set (DESIGN §1).
bool Login::State::belongs_here() {
  if (!access.redirect || access.portals.empty()) return true;
  const std::string tag = "," + std::to_string(setup.tpgt);
  if (std::any_of(access.portals.begin(), access.portals.end(),
                  [&](const std::string& portal) { return portal.ends_with(tag); })) {
    return true;
  }
  // A reused ISID is a reinstatement, and must find its session (DESIGN R9).
  if (setup.sessions != nullptr &&
      setup.sessions->has_session(who.initiator_name, isid, who.target_name)) {
    return true;
  }
  const std::string& nearest = access.portals.front();
  moved_to = nearest.substr(0, nearest.rfind(','));  // §13.8: without the tag when it redirects
  return refuse(LoginStatus::kTargetMovedTemporarily, "the host's nearest portal is " + moved_to);
}

bool Login::State::has_room() {
  if (setup.sessions == nullptr) return true;
  const SessionKey key{who.initiator_name, isid, who.target_name, setup.tpgt};
  if (const unsigned most = setup.sessions->limit_reached(key); most != 0) {
    return refuse(LoginStatus::kOutOfResources, "this gateway has " + std::to_string(most) +
                                                    " sessions, as many as its GatewayPool permits "
                                                    "(max_sessions_per_gateway)");
  }
  if (access.max_sessions == 0) return true;
  const unsigned sessions = setup.sessions->sessions_of(access.initiators, key);
  if (sessions < access.max_sessions) return true;
  return refuse(LoginStatus::kOutOfResources,
                "host " + access.host + " has " + std::to_string(sessions) +
                    " sessions at this gateway already, and may have " +
                    std::to_string(access.max_sessions));
}

// Gateways come in by the forwarding port, hosts by the others.
bool Login::State::admit_gateway(std::span<const TextPair> pairs) {
  const auto origin_pair = std::find_if(
      pairs.begin(), pairs.end(), [](const TextPair& pair) { return pair.key == kOriginKey; });
  if (setup.forwarding == nullptr) {
    if (origin_pair == pairs.end()) return true;
    return refuse(LoginStatus::kInitiatorError, "a gateway came to a portal that is for hosts");
  }
  if (origin_pair == pairs.end()) {
    return refuse(LoginStatus::kMissingParameter, "only gateways may log in to a forwarding port");
  }
  Result<Origin> given = parse_origin(origin_pair->value);
  if (!given) return refuse(LoginStatus::kInitiatorError, given.error());
  const ForwardingAccess::Identity self = setup.forwarding->identity();
  if (self.number == 0 || given->owner != self.number ||
      given->owner_incarnation != self.incarnation) {
    return refuse(LoginStatus::kTargetRemoved, "meant for another gateway, or one that is gone");
  }
  if (setup.forwarding->fenced(given->gateway, given->incarnation)) {
    return refuse(LoginStatus::kAuthorizationFailure, "the gateway is fenced");
  }
  // The status is that of a wrong key, so that it does not tell which gateways exist.
  if (!setup.forwarding->knows(given->gateway, given->incarnation)) {
    return refuse(LoginStatus::kAuthenticationFailure, "gateway " + std::to_string(given->gateway) +
                                                           ", incarnation " + given->incarnation +
                                                           ", is no peer of this gateway");
  }
  if (setup.forwarding->credentials_of(given->gateway, given->incarnation).empty()) {
    return refuse(LoginStatus::kAuthenticationFailure,
                  "no key of gateway " + std::to_string(given->gateway) + " is known yet");
  }
  const auto age = std::find_if(pairs.begin(), pairs.end(),
                                [](const TextPair& pair) { return pair.key == kHostAgeKey; });
  if (age != pairs.end()) {
    const Result<Nanos> read = parse_host_age(age->value);
    if (!read) return refuse(LoginStatus::kInitiatorError, read.error());
    host_age = read.value();
  }
  origin = std::move(given).value();
  who.tpgt = origin.tpgt;
  return true;
}

bool Login::State::take_security(std::span<const TextPair> pairs) {
  std::vector<TextPair> early;
  for (const TextPair& pair : pairs) {
    const KeyRule* rule = find_key(pair.key);
    if (rule != nullptr && (rule->stages & kInAnyLogin) == kInOperational) early.push_back(pair);
    if (rule == nullptr) {
      const bool of_gateways =
          setup.forwarding != nullptr && (pair.key == kOriginKey || pair.key == kHostAgeKey);
      if (!of_gateways) append_pair(&response, pair.key, "NotUnderstood");
    } else if (rule->key == Key::kAuthMethod && !choose_method(pair.value)) {
      return false;
    }
  }
  if (!early.empty()) {
    Result<void> taken = negotiation.take(early, &response);
    if (!taken) return refuse(LoginStatus::kInitiatorError, taken.error());
  }
  return run_chap(pairs);
}

// §12.1: the first method of the initiator's list that is configured for it: CHAP if it is
// configured, else None.
bool Login::State::choose_method(std::string_view offered) {
  // A repetition never restarts an authentication.
  if (chap != nullptr) {
    return refuse(LoginStatus::kInitiatorError, "AuthMethod was negotiated twice");
  }
  const bool gateway = setup.forwarding != nullptr;
  bool required = gateway || (access.chap.configured() && !mutation_disables(Guard::kChap));
  std::string_view wanted = required ? "CHAP" : "None";
  std::vector<std::string_view> methods = split_list(offered);
  if (std::find(methods.begin(), methods.end(), wanted) == methods.end()) {
    return refuse(LoginStatus::kAuthenticationFailure,
                  required ? "CHAP is required, but the initiator doesn't offer it"
                           : "the initiator insists on an authentication that is not configured");
  }
  append_pair(&response, rule_of(Key::kAuthMethod).name, wanted);
  if (gateway) {
    // The peers may have changed since admit_gateway().
    std::vector<ChapPair> keys =
        setup.forwarding->credentials_of(origin.gateway, origin.incarnation);
    if (keys.empty()) {
      return refuse(LoginStatus::kAuthenticationFailure, "the gateway is no longer a peer");
    }
    chap = std::make_unique<Chap>(std::move(keys), ChapAlgorithm::kSha256);
  } else if (required) {
    chap = std::make_unique<Chap>(access.chap, access.mutual);
  }
  return true;
}

// AuthMethod in the operational stage. Initiators that skip the security stage may send it there.
// take_first_identity() has refused every login that skipped a required authentication.
bool Login::State::take_late_method(std::string_view offered) {
  if (chap != nullptr || !authenticated) {
    return refuse(LoginStatus::kInitiatorError, "AuthMethod may not be sent in this stage");
  }
  return choose_method(offered);
}

bool Login::State::run_chap(std::span<const TextPair> pairs) {
  if (chap == nullptr) {
    bool security = std::any_of(pairs.begin(), pairs.end(), [](const TextPair& pair) {
      const KeyRule* rule = find_key(pair.key);
      return rule != nullptr && rule->rule == Rule::kSecurity;
    });
    if (!security) return true;
    return refuse(LoginStatus::kInitiatorError, "CHAP keys came without AuthMethod=CHAP");
  }
  const bool responds = std::any_of(pairs.begin(), pairs.end(),
                                    [](const TextPair& pair) { return pair.key == "CHAP_R"; });
  if (responds && setup.forwarding == nullptr && setup.may_try &&
      !setup.may_try(who.initiator_name)) {
    return refuse(LoginStatus::kAuthenticationFailure,
                  "too many attempts have failed: the CHAP response was not evaluated");
  }
  switch (chap->step(pairs, setup.random, &response)) {
    case Chap::Verdict::kGoOn:
      return true;
    case Chap::Verdict::kProven:
      if (setup.forwarding != nullptr && !chap->mutual()) {
        return refuse(LoginStatus::kAuthenticationFailure,
                      "a gateway must ask for mutual authentication");
      }
      authenticated = true;
      who.auth_method = "CHAP";
      who.auth_user = chap->user();
      who.mutual_auth = chap->mutual();
      return enter();
    case Chap::Verdict::kRefused:
      return refuse(LoginStatus::kAuthenticationFailure, chap->reason());
    case Chap::Verdict::kViolation:
      break;
  }
  return refuse(LoginStatus::kInitiatorError, chap->reason());
}

bool Login::State::take_operational(std::span<const TextPair> pairs) {
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
  Result<void> taken = negotiation.take(negotiated, &response);
  if (!taken) return refuse(LoginStatus::kInitiatorError, taken.error());
  if (!declared) {
    declared = true;
    if (target != nullptr && !target->alias().empty()) {
      append_pair(&response, rule_of(Key::kTargetAlias).name,
                  std::string_view(target->alias()).substr(0, kMaxAlias));
    }
    negotiation.declare(&response);
  }
  return true;
}

}  // namespace sluice::iscsi
