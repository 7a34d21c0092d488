// Whether a directory is a pool's, or another one at the same path: the directory below a mount
// that is missing, another disk, a copy. The file `.sluice/pool` marks the pool's storage:
//
//   sluice-pool 1
//   pool 5f0c7a3e-...              uid of the StoragePool
//   marker 1b4e28ba2fa14b0a...     random, so that storage that was replaced is not taken again
//   filesystem 9f31...             its UUID; `-`: the kernel does not tell it
//   adoptions 0                    that an administrator had confirmed when this was written
//
// The file holds it twice (two_copies.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "control/wire.h"

namespace sluice::control {

struct PoolMarker {
  std::string pool;
  std::string id;
  std::string filesystem;  // 32 hexadecimal digits; empty: not known
  uint32_t adoptions = 0;
  bool operator==(const PoolMarker&) const = default;
};

std::string format_marker(const PoolMarker& marker);            // without its seal
std::optional<PoolMarker> parse_marker(std::string_view text);  // nullopt: it is none

// UUID of the file system that `directory` is in, 32 hexadecimal digits; empty: not known.
std::string filesystem_id(int directory);

// Pools without an identity from the control plane are served as before there were markers.
struct ExpectedPool {
  std::string uid = {};
  std::optional<wire::PoolIdentity> identity = {};
};

struct Identified {
  std::optional<PoolMarker> marker = {};
  // Why nothing may be created or deleted in the directory, with the fix; empty: it is the pool's.
  std::string doubt = {};
  // Another marker was expected: images found here may be those of another pool, or old copies.
  bool foreign = false;
  bool mark_is_due = false;  // internal: a marker has to be written
};

// Compares the marker with what is expected, and writes the marker where that is due: at first use,
// at the upgrade of a pool that is older than markers, after a confirmed replacement. `path` is the
// directory in errors. Error: the directory can't be read or written.
Result<Identified> identify_pool(int directory, const std::string& path,
                                 const ExpectedPool& expected);

// The marker as it is now; nullopt: none, or it is damaged.
Result<std::optional<PoolMarker>> read_marker(int directory, const std::string& path);

}  // namespace sluice::control
