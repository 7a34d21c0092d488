// Builds the access list of a target from what the control plane sends: the initiators of each host
// and their CHAP credentials.
#pragma once

#include <string>

#include "base/result.h"
#include "control/wire.h"
#include "nexus/exports.h"

namespace sluice::control {

// The entry of a target's access list for `host`. `access` belongs to the same host. Error: the
// host is incomplete and the target must admit none of its initiators. Reasons: no initiators; a
// CHAP secret outside 12 to 255 bytes; a secret without a name, or a name without a secret; mutual
// CHAP without CHAP (RFC 7143 §12.1.3).
Result<lun::HostAccess> host_access(const wire::DesiredHost& host,
                                    const wire::DesiredAccess& access);

// uid of the host to which `initiator` belongs at the target `iqn`; empty: unknown. Any thread.
std::string host_of(const lun::Exports& exports, const std::string& iqn,
                    const std::string& initiator);

}  // namespace sluice::control
