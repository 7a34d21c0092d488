#include "iscsi/session_access.h"

#include "iscsi/login/chap.h"

namespace sluice::iscsi {

SessionAccess::Verdict SessionAccess::check(const Parameters& p) const {
  const auto target = gateway_.exports->find(p.target_name);
  // A target that was removed and added again is another one.
  if (!target || target != target_.lock()) return {LoginStatus::kNotFound, "the target is gone"};
  return forwarding_ ? check_forwarded(p, *target) : check_host(p, *target);
}

// The origin has authenticated the host. But this gateway checks itself whether the host is
// admitted and may write.
SessionAccess::Verdict SessionAccess::check_forwarded(const Parameters& p,
                                                      lun::Target& target) const {
  if (fenced()) return {LoginStatus::kAuthorizationFailure, "the gateway is fenced"};
  if (!from_peer()) return {LoginStatus::kAuthenticationFailure, "the gateway is no peer"};
  lun::HostAccess access;
  const bool admitted = target.access_for(p.initiator_name, &access);
  wipe(&access);
  if (admitted) return {LoginStatus::kSuccess, "", access.read_only || origin_.read_only};
  return {LoginStatus::kAuthorizationFailure, "the owner does not admit this host"};
}

SessionAccess::Verdict SessionAccess::check_host(const Parameters& p, lun::Target& target) const {
  lun::HostAccess access;
  const bool admitted = target.access_for(p.initiator_name, &access);
  // A session that never authenticated must not outlive the change that requires CHAP. A rotated
  // secret ends no session: the initiator has authenticated with the secret of its time.
  const bool lacks_proof = access.chap.configured() && !proven(p);
  wipe(&access);
  if (!admitted) {
    return {LoginStatus::kNotFound, "the initiator may not use the target any more"};
  }
  if (lacks_proof) return {LoginStatus::kAuthenticationFailure, "the host needs CHAP now"};
  return {LoginStatus::kSuccess, "", access.read_only};
}

bool SessionAccess::fenced() const {
  return forwarding_ && gateway_.forwarding.fenced(origin_.gateway, origin_.incarnation);
}

bool SessionAccess::from_peer() const {
  return gateway_.forwarding.knows(origin_.gateway, origin_.incarnation);
}

bool SessionAccess::replaced() const {
  return gateway_.forwarding.replaced(origin_.gateway, origin_.incarnation);
}

}  // namespace sluice::iscsi
