// The marker of a pool in a directory: the file `.sluice/pool`, which holds it twice
// (two_copies.h). Its id of the storage is the file system's UUID.
#pragma once

#include <optional>
#include <string>

#include "control/local/pool_marker.h"

namespace sluice::control {

// UUID of the file system that `directory` is in, 32 hexadecimal digits; empty: not known.
std::string filesystem_id(int directory);

// As identify_pool(MarkedStorage&, ...) of the directory; `path` names it in errors.
Result<Identified> identify_pool(int directory, const std::string& path,
                                 const ExpectedPool& expected);

// The marker as it is now; nullopt: none, or it is damaged.
Result<std::optional<PoolMarker>> read_marker(int directory, const std::string& path);

}  // namespace sluice::control
