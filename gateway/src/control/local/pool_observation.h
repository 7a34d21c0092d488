// The report of a pool in a directory: its capacity, used space, and whether reflinks work.
#pragma once

#include <string>

#include "control/local/pool_directory.h"
#include "control/wire.h"

namespace sluice::control {

// Blocks for as long as the filesystem does.
wire::PoolObserved observe(const std::string& uid, const PoolDirectory& pool);

}  // namespace sluice::control
