// Management of the images in a pool, on the control plane's behalf: what its jobs are made of.
// Each may come again: what is done already is done well. Calls wait for Ceph, as long as it takes:
// workers only.
//
// Volumes' images are named by the volume's UUID (image_of), so that what nobody knows any more can
// be found. An image that is served is managed by its owner through its own open image (the
// functions on Image): from elsewhere a hung owner would be waited for, and then blocklisted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "rbd/image.h"
#include "rbd/rados_client.h"

namespace sluice::rbd {

// "volume-" and the UUID as 8-4-4-4-12.
std::string image_of(const std::string& volume_uuid);
// The other way round; empty: no volume's image is called that.
std::string volume_of(const std::string& image);
// What a copy is called until it is whole. Ceph makes one in steps: whoever is killed between them
// leaves an image that opens and holds zeros, or one that its source doesn't know of.
std::string unfinished(const std::string& image);

struct NewImage {
  uint64_t size = 0;      // bytes
  std::string data_pool;  // empty: the pool itself
};

struct ImageFacts {
  std::string image;   // name
  std::string volume;  // UUID of the volume, of a name by image_of(); else empty
};

// How far a long one is, 0 to 1000. False: it is to stop, which it does as soon as it can.
using Progress = std::function<bool(unsigned permille)>;

class Images {
 public:
  explicit Images(std::shared_ptr<Pool> pool) : pool_(std::move(pool)) {}

  // Thin, with layering, exclusive-lock and deep-flatten. One that is there already must have that
  // size; what somebody has left who was killed at it is made anew.
  Result<void> create(const std::string& image, const NewImage& wanted);
  // Whether it can be served, as far as can be told while somebody does: its size in bytes.
  Result<uint64_t> adopt(const std::string& image);
  // An image that somebody made gets another name, once it was opened as an owner would. Its size
  // in bytes; also where that was done before.
  Result<uint64_t> adopt_as(const std::string& image, const std::string& name);
  // Of an image that nobody serves. A smaller one than it has is refused.
  Result<void> grow(const std::string& image, uint64_t bytes);
  // With what an attempt to copy something to it has left. Refused while it is open somewhere, or
  // has snapshots.
  Result<void> remove(const std::string& image);
  // Out of sight, and removable by `rbd trash rm` once `seconds` are over.
  Result<void> trash(const std::string& image, uint64_t seconds);
  // A thin copy of a snapshot (clone format 2: the snapshot needs no protection, and may go first).
  // It has its name once it is whole.
  Result<void> clone(const std::string& image, const std::string& snapshot, const std::string& copy,
                     const std::string& data_pool);
  // Opens an image that nobody serves, for the functions below.
  Result<std::unique_ptr<Image>> open(const std::string& image);
  Result<bool> exists(const std::string& image);
  // Also of an image that is served.
  Result<ImageIdentity> identity(const std::string& image);
  // Volumes' images, limits::kMaxPoolImages at most: whoever knows the volumes knows the orphans.
  Result<std::vector<ImageFacts>> list();

 private:
  Result<void> remove_one(const std::string& image);
  std::string named(const std::string& image) const { return pool_->name() + "/" + image; }
  const std::shared_ptr<Pool> pool_;
};

Result<void> snapshot(Image& image, const std::string& name);
Result<std::vector<std::string>> snapshots(Image& image);
// Where clones hang on it, Ceph keeps it in its trash until the last of them is gone or flattened.
Result<void> remove_snapshot(Image& image, const std::string& name);
// The image as it was. Refused while another client has it open: hosts would find other data under
// their feet. Hosts of ours are the caller's to look at.
Result<void> roll_back(Image& image, const std::string& name, const Progress& progress);
// A clone gets its own copy of what it shares.
Result<void> flatten(Image& image, const Progress& progress);

}  // namespace sluice::rbd
