// Checks whether a session still has access, and requests a logout if not; delays the answers to
// failed logins.
#include "base/limits.h"
#include "base/log.h"
#include "iscsi/connection.h"
#include "iscsi/counters.h"
#include "iscsi/login/chap.h"

namespace sluice::iscsi {

Connection::Barred Connection::barred(const Parameters& p, lun::HostAccess* access) const {
  const auto target = shard_.gateway->exports->find(p.target_name);
  if (!target || target != target_.lock()) return {LoginStatus::kNotFound, "the target is gone"};
  if (ends_.forwarding) {
    if (from_fenced()) return {LoginStatus::kAuthorizationFailure, "the gateway is fenced"};
    if (!from_peer()) return {LoginStatus::kAuthenticationFailure, "the gateway is no peer"};
    // The origin has authenticated the host. But this gateway checks itself whether the host is
    // admitted and may write.
    const bool admitted = target->access_for(p.initiator_name, access);
    wipe(access);
    access->read_only = access->read_only || origin_.read_only;
    if (admitted) return {};
    return {LoginStatus::kAuthorizationFailure, "the owner does not admit this host"};
  }
  const bool admitted = target->access_for(p.initiator_name, access);
  // A session that never authenticated must not outlive the change that requires CHAP. A rotated
  // secret ends no session: the initiator has authenticated with the secret of its time.
  const bool lacks_proof = access->chap.configured() && !proven(p);
  wipe(access);  // the caller needs no secret
  if (!admitted) {
    return {LoginStatus::kNotFound, "the initiator may not use the target any more"};
  }
  if (lacks_proof) return {LoginStatus::kAuthenticationFailure, "the host needs CHAP now"};
  return {};
}

bool Connection::from_fenced() const {
  return ends_.forwarding &&
         shard_.gateway->forwarding.fenced(origin_.gateway, origin_.incarnation);
}

bool Connection::from_peer() const {
  return shard_.gateway->forwarding.knows(origin_.gateway, origin_.incarnation);
}

// A gateway that was replaced by another incarnation is dropped immediately. A gateway that is no
// longer a peer may complete its commands within limits::kEvictionLogout, because leaving a path
// set looks the same.
void Connection::review_access() {
  if (state_ != State::kFullFeature) return;
  if (from_fenced()) return drop("the gateway that forwards is fenced");
  if (ends_.forwarding && !from_peer() &&
      shard_.gateway->forwarding.replaced(origin_.gateway, origin_.incarnation)) {
    return drop("the gateway that forwards was replaced by another process");
  }
  if (leave_by_ != 0) return;
  const Parameters& p = session_->parameters();
  lun::HostAccess access;
  const Barred barrier = barred(p, &access);
  const bool admitted = barrier.status == LoginStatus::kSuccess;
  // A later login would be read-only.
  if (admitted && (p.read_only || !access.read_only)) return;
  ask_to_leave(admitted ? "read-only" : barrier.why);
}

LoginPeer Connection::peer_of(std::string_view initiator) const {
  std::string_view address = ends_.peer_address;
  address = address.substr(0, address.rfind(':'));
  return {initiator, ends_.peer_network.empty() ? address : std::string_view(ends_.peer_network),
          address};
}

bool Connection::may_try(std::string_view initiator) {
  response_evaluated_ = shard_.gateway->throttle.may_try(peer_of(initiator), shard_.now);
  if (!response_evaluated_) shard_.counters->logins_throttled.add();
  return response_evaluated_;
}

// Gateways authenticate with a key of 256 bits, and their logins must not be delayed.
Nanos Connection::hold_refusal(LoginStatus status) {
  if (ends_.forwarding || status != LoginStatus::kAuthenticationFailure) return 0;
  return shard_.gateway->throttle.failed(peer_of(login_->initiator()), response_evaluated_,
                                         shard_.now);
}

// The end of a session counts too, because its host will log in again.
void Connection::note_success(const Parameters& p) {
  const LoginPeer peer = peer_of(p.initiator_name);
  if (ends_.forwarding) return shard_.gateway->known_gateways.succeeded(peer.network);
  if (p.discovery && !proven(p)) return;
  shard_.gateway->throttle.succeeded(peer);
  shard_.gateway->known_hosts.succeeded(peer.network);
}

void Connection::make_room() {
  if (transport_closed_) return;
  if (!session_) count_login(kLoginDropped);
  shard_.counters->connections_evicted.add();
  transport_closed_ = true;
  transport_.close(true);
  begin_end(true);
}

void Connection::evict() {
  if (state_ == State::kFullFeature && leave_by_ == 0) ask_to_leave("evicted");
}

void Connection::ask_to_leave(std::string_view why) {
  leave_by_ = shard_.now + limits::kEvictionLogout;
  const Parameters& p = session_->parameters();
  log::info("session asked to leave", {{"session", tsih_},
                                       {"initiator", p.initiator_name},
                                       {"target", p.target_name},
                                       {"reason", why}});
  session_->ask_logout(static_cast<uint16_t>(limits::kEvictionLogout / kSecond));
}

}  // namespace sluice::iscsi
