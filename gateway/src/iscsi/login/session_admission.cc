#include "iscsi/login/session_admission.h"

#include <algorithm>
#include <string>

namespace sluice::iscsi {
namespace {

// Portals of a host that the control plane has balanced. The portal group tag tells them apart, in
// all of the path set (DESIGN §1).
bool belongs_here(const lun::HostAccess& access, const SessionKey& key,
                  const SessionDirectory* sessions) {
  if (!access.redirect || access.portals.empty()) return true;
  const std::string tag = "," + std::to_string(key.tpgt);
  if (std::any_of(access.portals.begin(), access.portals.end(),
                  [&](const std::string& portal) { return portal.ends_with(tag); })) {
    return true;
  }
  // A reused ISID is a reinstatement, and must find its session (DESIGN R9).
  return sessions != nullptr && sessions->has_session(key.initiator, key.isid, key.target);
}

}  // namespace

LoginRefusal admit_session(const lun::HostAccess& access, const SessionKey& key,
                           const SessionDirectory* sessions) {
  if (!belongs_here(access, key, sessions)) {
    const std::string& nearest = access.portals.front();
    // §13.8: without the tag when it redirects.
    const std::string portal = nearest.substr(0, nearest.rfind(','));
    return {LoginStatus::kTargetMovedTemporarily, "the host's nearest portal is " + portal, portal};
  }
  if (sessions == nullptr) return {};
  if (const unsigned most = sessions->limit_reached(key); most != 0) {
    return {LoginStatus::kOutOfResources,
            "this gateway has " + std::to_string(most) +
                " sessions, as many as its GatewayPool permits (max_sessions_per_gateway)",
            ""};
  }
  if (access.max_sessions == 0) return {};
  const unsigned count = sessions->sessions_of(access.initiators, key);
  if (count < access.max_sessions) return {};
  return {LoginStatus::kOutOfResources,
          "host " + access.host + " has " + std::to_string(count) +
              " sessions at this gateway already, and may have " +
              std::to_string(access.max_sessions),
          ""};
}

}  // namespace sluice::iscsi
