// The keys by which a gateway that forwards commands identifies itself and the nexus of its host
// (forwarding_wire.h).
//
// Threads: any.
#pragma once

#include <span>

#include "base/clock.h"
#include "iscsi/forwarding_wire.h"
#include "iscsi/login/forwarding_access.h"
#include "iscsi/login/login_setup.h"
#include "iscsi/login/text.h"

namespace sluice::iscsi {

struct Forwarder {
  Origin origin;
  Nanos host_age = 0;
};

bool names_origin(std::span<const TextPair> pairs);
// Reads the keys of a first request at a forwarding port. LoginStatus::kSuccess: *out is a peer of
// this gateway, which has a key to authenticate with; it has not proven that yet.
LoginRefusal read_forwarder(const ForwardingAccess& access, std::span<const TextPair> pairs,
                            Forwarder* out);

}  // namespace sluice::iscsi
