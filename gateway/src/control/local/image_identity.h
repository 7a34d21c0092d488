// The identity of a volume's image file. The gateway refuses another file of the same name, for
// example a copy or a new file. `.sluice/LOCATION.image` holds the identity twice (two_copies.h):
//
//   sluice-image 1
//   inode 131
//   generation 2874618           of the inode (FS_IOC_GETVERSION); 0: not known
//   born 1764060000.250000000    when the file was created; 0.000000000: not known
//   size 1048576                 in bytes, of snapshots only
//   adoptions 0                  of the pool (pool_marker.h) when this was written
//
// The gateway records an image without such a file when it opens the image: a former release
// created the image, or an administrator removed the file to confirm a restored image.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace sluice::control {

struct ImageIdentity {
  uint64_t inode = 0;
  uint32_t generation = 0;
  int64_t born_seconds = 0;
  uint32_t born_nanos = 0;
  uint32_t adoptions = 0;
  uint64_t size = 0;  // bytes; snapshots never change their size; 0: not recorded
};

std::string format_identity(const ImageIdentity& identity);          // without its checksum
std::optional<ImageIdentity> parse_identity(std::string_view text);  // nullopt: invalid

// Location of the identities: `records` is `.sluice`; `path` is the pool's directory in errors.
struct ImageRecords {
  int records;
  const std::string& path;
  uint32_t adoptions;  // of the pool's marker
};

// Compares the open `file` with the recorded identity. Records the identity if there is none,
// unless the pool is full, or if the pool was adopted since. Error: it is another file, or the
// record is damaged; with the remedy.
Result<void> verify_image(const ImageRecords& where, const std::string& location, int file);
// Records the identity of a file that replaces the image intentionally (a rollback).
Result<void> record_image(const ImageRecords& where, const std::string& location, int file);
// Call it when the image is deleted. Does nothing if nothing is recorded.
Result<void> forget_image(const ImageRecords& where, const std::string& location);

}  // namespace sluice::control
