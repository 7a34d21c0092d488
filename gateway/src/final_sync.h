// The last flush of a process that ends while a medium hangs, without destroying its backends.
#pragma once

#include "base/clock.h"
#include "nexus/exports.h"

namespace sluice {

// Makes the written data of all units durable. Media that hang together wait for each other, and no
// others do. Returns after `bound` at the latest; calls that hang then still use their backend.
void sync_caches(const lun::Exports& exports, Nanos bound);

}  // namespace sluice
