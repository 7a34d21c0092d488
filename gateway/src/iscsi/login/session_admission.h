// Whether a host that may use a target gets a session at this portal: the control plane may have
// assigned it other portals, and the number of sessions is limited.
//
// Threads: any.
#pragma once

#include "iscsi/login/login_setup.h"
#include "iscsi/session_directory.h"
#include "nexus/target.h"

namespace sluice::iscsi {

// `access`: of the host. `key`: of the session. `sessions`: null if none is known or counted.
// LoginStatus::kSuccess: it gets the session.
LoginRefusal admit_session(const lun::HostAccess& access, const SessionKey& key,
                           const SessionDirectory* sessions);

}  // namespace sluice::iscsi
