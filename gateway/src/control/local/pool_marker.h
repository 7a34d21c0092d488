// Whether storage is a pool's, or other storage in its place: the directory below a mount that is
// missing, another disk, a Ceph pool that was created again under its name, a copy. A marker in
// the storage identifies it:
//
//   sluice-pool 1
//   pool 5f0c7a3e-...              uid of the StoragePool
//   marker 1b4e28ba2fa14b0a...     random, so that storage that was replaced is not taken again
//   filesystem 9f31...             id of the storage (MarkedStorage::storage_id); `-`: not known
//   adoptions 0                    that an administrator had confirmed when this was written
//
// A directory has its marker in the file `.sluice/pool` (directory_marker.h), a Ceph pool in an
// object (rbd/rbd_marker.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/wire.h"

namespace sluice::control {

struct PoolMarker {
  std::string pool;
  std::string id;
  std::string filesystem;  // without spaces; empty: not known
  uint32_t adoptions = 0;
  bool operator==(const PoolMarker&) const = default;
};

std::string format_marker(const PoolMarker& marker);            // without its seal
std::optional<PoolMarker> parse_marker(std::string_view text);  // nullopt: it is none

// Pools without an identity from the control plane are served as before there were markers.
struct ExpectedPool {
  std::string uid = {};
  std::optional<wire::PoolIdentity> identity = {};
  // uids of further pools of this node. Their markers are never overwritten: two pools can name one
  // directory by different paths.
  std::vector<std::string> others = {};
};

struct Identified {
  std::optional<PoolMarker> marker = {};
  // Why nothing may be created or deleted in the storage, with the fix; empty: it is the pool's.
  std::string doubt = {};
  // Another marker was expected: images found here may be those of another pool, or old copies.
  bool foreign = false;
  bool mark_is_due = false;  // internal: a marker has to be written
};

struct FoundMarker {
  bool exists = false;
  std::optional<PoolMarker> marker = {};  // of an undamaged copy
};

// Storage that carries a marker. An Error means that it can't be read or written.
class MarkedStorage {
 public:
  virtual ~MarkedStorage() = default;
  virtual std::string shown() const = 0;        // the storage, in errors
  virtual std::string marker_name() const = 0;  // of the marker's file or object
  virtual std::string kind() const = 0;         // "file system", "Ceph pool"
  virtual std::string restore() const = 0;      // how the pool's storage comes back: "Mount ..."
  // Of the storage itself, so that a copy of it has another one; empty: not known.
  virtual std::string storage_id() const = 0;
  virtual std::string fresh_marker_id() const = 0;
  virtual Result<FoundMarker> find() = 0;
  // The first of the images that is not there; empty: all are.
  virtual Result<std::string> missing_image(const wire::PoolIdentity& identity) = 0;
  // An image, where the pool has none: of another pool or system; empty: there is none, or others
  // may have images here.
  virtual Result<std::string> unknown_image() = 0;
  virtual Result<void> begin_marking() { return {}; }
  // False: another gateway has written a marker since find().
  virtual Result<bool> write(const PoolMarker& marker) = 0;
};

// Compares the marker with the expected one. Writes it where that is due: at first use, at the
// upgrade of a pool that is older than markers, after a confirmed replacement.
Result<Identified> identify_pool(MarkedStorage& storage, const ExpectedPool& expected);

}  // namespace sluice::control
