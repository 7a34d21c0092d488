// Management of a local pool's files (gateway_stream.proto, Job). Each job may come again: what is
// done already is done well. Paths stay below the pool's directory and go through no symbolic link.
//
// What a pool can: a snapshot or clone is a reflink (FICLONE), which filesystems like XFS and Btrfs
// have and ext4 hasn't. A snapshot of a volume that is served here is taken between commands: every
// block of the unit is held exclusively meanwhile.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "control/local/local_pool.h"
#include "control/wire.h"

namespace sluice::control {

// Blocks for as long as the filesystem takes.
JobOutcome run_job(const LocalPool& pool, const wire::Job& job, const BetweenCommands& between);

// Largest size of a file in the file system that `records` is in, in bytes, 64 TiB at most; 0: it
// can't be found out. It sets the size of an empty file, which takes no space.
int64_t probe_max_image_bytes(int records);

// Capacity, space in use and whether reflinks work, as of now.
wire::PoolObserved look_at(const std::string& uid, const LocalPool& pool);

}  // namespace sluice::control
