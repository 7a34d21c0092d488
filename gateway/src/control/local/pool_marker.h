// Checks whether storage belongs to a pool. Other storage may be in its place: the directory below
// a missing mount, another disk, a Ceph pool that was created again under the same name, or a copy.
// A marker in the storage identifies it:
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
  std::string filesystem;  // without spaces; empty: unknown
  uint32_t adoptions = 0;
  bool operator==(const PoolMarker&) const = default;
};

std::string format_marker(const PoolMarker& marker);            // without its checksum
std::optional<PoolMarker> parse_marker(std::string_view text);  // nullopt: invalid

// A pool without an identity from the control plane is served without a check of its marker.
struct ExpectedPool {
  std::string uid = {};
  std::optional<wire::PoolIdentity> identity = {};
  // uids of the other pools of this node. Their markers are never overwritten: two pools may name
  // one directory by different paths.
  std::vector<std::string> others = {};
};

struct Identified {
  std::optional<PoolMarker> marker = {};
  // Why nothing may be created or deleted in the storage, with the remedy; empty: it is the pool's.
  std::string doubt = {};
  // Another marker was expected: images here may belong to another pool, or be old copies.
  bool foreign = false;
  bool mark_is_due = false;  // internal: a marker has to be written
};

struct FoundMarker {
  bool exists = false;
  std::optional<PoolMarker> marker = {};  // of an undamaged copy
  bool complete = true;                   // false: a copy is damaged or missing
};

// Storage that has a marker. An Error means that it can't be read or written.
class MarkedStorage {
 public:
  virtual ~MarkedStorage() = default;
  virtual std::string shown() const = 0;        // the storage, in errors
  virtual std::string marker_name() const = 0;  // name of the marker's file or object
  virtual std::string kind() const = 0;         // "file system", "Ceph pool"
  // how to make the pool's storage available again: "Mount ..."
  virtual std::string restore() const = 0;
  // Id of the storage itself; a copy has another one. Empty: unknown.
  virtual std::string storage_id() const = 0;
  virtual std::string fresh_marker_id() const = 0;
  virtual Result<FoundMarker> find() = 0;
  // The first image that is missing; empty: none is missing.
  virtual Result<std::string> missing_image(const wire::PoolIdentity& identity) = 0;
  // An image although the pool has none: it belongs to another pool or system. Empty: there is
  // none, or images of others are permitted here.
  virtual Result<std::string> unknown_image() = 0;
  virtual Result<void> begin_marking() { return {}; }
  // False: another gateway wrote a marker since find().
  virtual Result<bool> write(const PoolMarker& marker) = 0;
};

// Compares the marker with the expected one. Writes it when necessary: at first use, at the upgrade
// of a pool without a marker, after a confirmed replacement.
Result<Identified> identify_pool(MarkedStorage& storage, const ExpectedPool& expected);

}  // namespace sluice::control
