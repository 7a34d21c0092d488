#include "iscsi/login/forwarder.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::iscsi {
namespace {

const TextPair* find_text(std::span<const TextPair> pairs, std::string_view key) {
  const auto it = std::find_if(pairs.begin(), pairs.end(),
                               [key](const TextPair& pair) { return pair.key == key; });
  return it == pairs.end() ? nullptr : &*it;
}

LoginRefusal check_origin(const ForwardingAccess& access, const Origin& origin) {
  const ForwardingAccess::Identity self = access.identity();
  if (self.number == 0 || origin.owner != self.number ||
      origin.owner_incarnation != self.incarnation) {
    return {LoginStatus::kTargetRemoved,
            "meant for another gateway, or for an earlier process of this one", ""};
  }
  if (access.fenced(origin.gateway, origin.incarnation)) {
    return {LoginStatus::kAuthorizationFailure, "the gateway is fenced", ""};
  }
  const std::string name = "gateway " + std::to_string(origin.gateway);
  // The status is that of a wrong key, so that it does not tell which gateways exist.
  if (!access.knows(origin.gateway, origin.incarnation)) {
    return {LoginStatus::kAuthenticationFailure,
            name + ", incarnation " + origin.incarnation + ", is no peer of this gateway", ""};
  }
  if (access.credentials_of(origin.gateway, origin.incarnation).empty()) {
    return {LoginStatus::kAuthenticationFailure, "no key of " + name + " is known yet", ""};
  }
  return {};
}

}  // namespace

bool names_origin(std::span<const TextPair> pairs) {
  return find_text(pairs, kOriginKey) != nullptr;
}

LoginRefusal read_forwarder(const ForwardingAccess& access, std::span<const TextPair> pairs,
                            Forwarder* out) {
  const TextPair* given = find_text(pairs, kOriginKey);
  if (given == nullptr) {
    return {LoginStatus::kMissingParameter, "only gateways may log in to a forwarding port", ""};
  }
  Result<Origin> origin = parse_origin(given->value);
  if (!origin) return {LoginStatus::kInitiatorError, origin.error(), ""};
  LoginRefusal refusal = check_origin(access, *origin);
  if (refusal.status != LoginStatus::kSuccess) return refusal;
  if (const TextPair* age = find_text(pairs, kHostAgeKey)) {
    const Result<Nanos> read = parse_host_age(age->value);
    if (!read) return {LoginStatus::kInitiatorError, read.error(), ""};
    out->host_age = read.value();
  }
  out->origin = std::move(origin).value();
  return {};
}

}  // namespace sluice::iscsi
