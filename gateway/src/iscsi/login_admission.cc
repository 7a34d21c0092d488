#include "iscsi/login_admission.h"

#include <utility>

#include "iscsi/counters.h"

namespace sluice::iscsi {

LoginPeer LoginAdmission::peer_of(std::string_view initiator) const {
  std::string_view address = ends_.peer_address;
  address = address.substr(0, address.rfind(':'));
  return {initiator, ends_.peer_network.empty() ? address : std::string_view(ends_.peer_network),
          address};
}

bool LoginAdmission::may_try(std::string_view initiator) {
  if (shard_.gateway->throttle.may_try(peer_of(initiator), shard_.now)) {
    response_ = Response::kEvaluated;
    return true;
  }
  response_ = Response::kThrottled;
  shard_.counters->logins_throttled.add();
  return false;
}

// Gateways authenticate with a key of 256 bits, and their logins must not be delayed.
Nanos LoginAdmission::delay_of_refusal(LoginStatus status, std::string_view initiator) {
  if (ends_.forwarding || status != LoginStatus::kAuthenticationFailure) return 0;
  return shard_.gateway->throttle.failed(peer_of(initiator), response_ == Response::kEvaluated,
                                         shard_.now);
}

void LoginAdmission::record_success(const Parameters& p) {
  const LoginPeer peer = peer_of(p.initiator_name);
  if (ends_.forwarding) return shard_.gateway->known_gateways.succeeded(peer.network);
  if (p.discovery && !proven(p)) return;
  shard_.gateway->throttle.succeeded(peer);
  shard_.gateway->known_hosts.succeeded(peer.network);
}

void LoginAdmission::count(size_t slot) {
  if (std::exchange(result_, Result::kCounted) == Result::kPending) {
    shard_.counters->logins[slot].add();
  }
}

}  // namespace sluice::iscsi
