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

#include "control/local/local_pool.h"
#include "control/wire.h"

namespace sluice::control {

// Blocks for as long as the filesystem does.
JobOutcome run_job(const LocalPool& pool, const wire::Job& job, const BetweenCommands& between);

// Largest file size in the file system of `records`, in bytes, at most 64 TiB; 0: unknown. The
// probe sets the size of an empty file, which uses no space.
int64_t probe_max_image_bytes(int records);

// Current capacity, used space and whether reflinks work.
wire::PoolObserved observe(const std::string& uid, const LocalPool& pool);

}  // namespace sluice::control
