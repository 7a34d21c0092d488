// Whether a session still belongs where it is, and how one that doesn't is asked to leave.
#include "base/limits.h"
#include "base/log.h"
#include "iscsi/connection.h"
#include "iscsi/counters.h"
#include "iscsi/login/chap.h"

namespace sluice::iscsi {

LoginStatus Connection::barred(const Parameters& p, lun::HostAccess* access) const {
  const auto target = shard_.gateway->exports->find(p.target_name);
  if (!target || target != target_.lock()) return LoginStatus::kNotFound;
  if (ends_.forwarding) {
    if (from_fenced()) return LoginStatus::kAuthorizationFailure;
    if (!from_peer()) return LoginStatus::kAuthenticationFailure;
    // The origin asked the host for its proof. Whether the host may be here, and may write, is not
    // the origin's to claim.
    const bool admitted = target->access_for(p.initiator_name, access);
    wipe(access);
    access->read_only = access->read_only || origin_.read_only;
    return admitted ? LoginStatus::kSuccess : LoginStatus::kAuthorizationFailure;
  }
  const bool admitted = target->access_for(p.initiator_name, access);
  // A session that never authenticated must not outlive the change that requires CHAP. A rotated
  // secret ends no session: the initiator has authenticated with the secret of its time.
  const bool lacks_proof = access->chap.configured() && p.auth_method != "CHAP";
  wipe(access);  // the caller needs no secret
  if (!admitted) return LoginStatus::kAuthorizationFailure;
  return lacks_proof ? LoginStatus::kAuthenticationFailure : LoginStatus::kSuccess;
}

bool Connection::from_fenced() const {
  return ends_.forwarding &&
         shard_.gateway->forwarding.fenced(origin_.gateway, origin_.incarnation);
}

bool Connection::from_peer() const {
  return shard_.gateway->forwarding.knows(origin_.gateway, origin_.incarnation);
}

// A gateway that was replaced by another incarnation ends at once. One that is no longer a peer may
// finish its commands within limits::kEvictionLogout: it leaves a path set in the same way.
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
  const LoginStatus why = barred(p, &access);
  const bool admitted = why == LoginStatus::kSuccess;
  // Had it logged in a moment later, it could not write.
  if (admitted && (p.read_only || !access.read_only)) return;
  ask_to_leave(admitted ? "read-only" : login_slot_name(login_slot(why)));
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
