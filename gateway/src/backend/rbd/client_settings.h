// The settings of a Ceph client before it connects: its identity, and the behavior of librados and
// librbd that the gateway relies on.
#pragma once

#include <rados/librados.h>

#include <string>

#include "backend/backend.h"
#include "base/clock.h"
#include "base/result.h"

namespace sluice::rbd {

// Errors name the file or the setting that is refused, with the remedy.
Result<void> configure(rados_t cluster, const backend::CephAccess& access);

// For people: "Ceph at 192.0.2.1".
std::string cluster_of(const backend::CephAccess& access);
std::string seconds_of(Nanos t);  // in the form of Ceph settings

}  // namespace sluice::rbd
