// What a client of Ceph is told before it connects: whose it is, and how librados and librbd have
// to behave for what this gateway promises.
#pragma once

#include <rados/librados.h>

#include <string>

#include "backend/backend.h"
#include "base/clock.h"
#include "base/result.h"

namespace sluice::rbd {

// Errors name the file or the setting that is refused, and the mend.
Result<void> configure(rados_t cluster, const backend::CephAccess& access);

// For people: "Ceph at 192.0.2.1".
std::string cluster_of(const backend::CephAccess& access);
std::string seconds_of(Nanos t);  // as settings have them

}  // namespace sluice::rbd
