// Manages the images of a pool for the control plane's jobs. Every function can be repeated;
// completed work then counts as success. The calls wait for Ceph without a time limit, so only
// only threads of an executor make them.
//
// The name of a volume's image contains the volume's UUID (image_of), so that orphans can be found.
// The owner of a served image manages it through its own open image (the functions on Image):
// another gateway would wait for a hung owner and then blocklist it.
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

// "volume-" and the UUID as 8-4-4-4-12 digits.
std::string image_of(const std::string& volume_uuid);
// The inverse of image_of(); empty: not the name of a volume's image.
std::string volume_of(const std::string& image);
// The temporary name of a copy until it is complete. Ceph copies in several steps. A process that
// is killed between them leaves an image that opens but reads zeros, or one that its source does
// not know.
std::string unfinished(const std::string& image);

struct NewImage {
  uint64_t size = 0;      // bytes
  std::string data_pool;  // empty: the pool itself
};

struct ImageFacts {
  std::string image;   // name
  std::string volume;  // UUID of the volume if the name has the form of image_of(); else empty
};

// Reports the progress of a long operation, 0 to 1000. Returns false to request a stop, which may
// be delayed.
using Progress = std::function<bool(unsigned permille)>;

class Images {
 public:
  explicit Images(std::shared_ptr<Pool> pool) : pool_(std::move(pool)) {}

  // Creates a thin image with layering, exclusive-lock and deep-flatten. An existing image must
  // have that size; the remains of an interrupted creation are replaced.
  Result<void> create(const std::string& image, const NewImage& wanted);
  // Checks whether the image can be served, as far as that is possible while it is in use. Returns
  // its size in bytes.
  Result<uint64_t> adopt(const std::string& image);
  // Opens the image as an owner would, then renames it to `name`. Returns its size in bytes, also
  // if it was renamed before.
  Result<uint64_t> adopt_as(const std::string& image, const std::string& name);
  // For an image that no gateway serves. Refuses to shrink it.
  Result<void> grow(const std::string& image, uint64_t bytes);
  // Also removes the remains of an unfinished copy. Refused while the image is open anywhere, or
  // has snapshots.
  Result<void> remove(const std::string& image);
  // Moves the image to the trash; `rbd trash rm` can delete it after `seconds`.
  Result<void> trash(const std::string& image, uint64_t seconds);
  // A thin copy of a snapshot (clone format 2: the snapshot needs no protection and may be deleted
  // first). The copy gets its name when it is complete.
  Result<void> clone(const std::string& image, const std::string& snapshot, const std::string& copy,
                     const std::string& data_pool);
  // Opens an image that no gateway serves, for the functions below.
  Result<std::unique_ptr<Image>> open(const std::string& image);
  Result<bool> exists(const std::string& image);
  // Works also while the image is served.
  Result<ImageIdentity> identity(const std::string& image);
  // Images with volume names, at most limits::kMaxPoolImages. The caller compares them with its
  // volumes to find orphans.
  Result<std::vector<ImageFacts>> list();

 private:
  Result<void> remove_one(const std::string& image);
  std::string named(const std::string& image) const { return pool_->name() + "/" + image; }
  const std::shared_ptr<Pool> pool_;
};

Result<void> snapshot(Image& image, const std::string& name);
Result<std::vector<std::string>> snapshots(Image& image);
// If clones depend on it, Ceph keeps it in its trash until the last clone is deleted or flattened.
Result<void> remove_snapshot(Image& image, const std::string& name);
// Restores the image to the snapshot. Refused while another client has the image open, because its
// data would change unexpectedly. The caller handles the hosts of this gateway.
Result<void> roll_back(Image& image, const std::string& name, const Progress& progress);
// Copies the data that a clone shares with its source.
Result<void> flatten(Image& image, const Progress& progress);

}  // namespace sluice::rbd
