// The marker of a pool in a directory: the file `.sluice/pool` with two copies (two_copies.h). Its
// storage id is the file system's UUID.
#pragma once

#include <optional>
#include <string>

#include "control/local/pool_marker.h"

namespace sluice::control {

// UUID of the file system of `directory`, 32 hexadecimal digits; empty: unknown.
std::string filesystem_id(int directory);

// Calls identify_pool(MarkedStorage&, ...) for the directory; `path` names it in errors.
Result<Identified> identify_pool(int directory, const std::string& path,
                                 const ExpectedPool& expected);

// The current marker; nullopt: none, or it is damaged.
Result<std::optional<PoolMarker>> read_marker(int directory, const std::string& path);

}  // namespace sluice::control
