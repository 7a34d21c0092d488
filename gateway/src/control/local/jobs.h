// Manages the files of a local pool (gateway_stream.proto, Job). A job may be sent again; completed
// work then counts as success. Paths stay below the pool's directory and follow no symbolic link.
//
// A snapshot or clone is a reflink (FICLONE). Filesystems such as XFS and Btrfs support it, ext4
// does not. For a snapshot of a volume that is served here, all blocks of the unit are locked
// exclusively, so that no command is in progress.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "control/local/pool_directory.h"
#include "control/volume/storage_pool.h"
#include "control/wire.h"

namespace sluice::control {

// Blocks for as long as the filesystem does.
JobOutcome run_job(const PoolDirectory& pool, const wire::Job& job, const BetweenCommands& between);

}  // namespace sluice::control
