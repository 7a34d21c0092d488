// Records which Ceph image belongs to a volume, so that another image of the same name is not
// served: one that was created again, or a copy. The record is the object `sluice.image.<location>`
// beside the image:
//
//   sluice-rbd-image 1
//   id 10a5c3b7f1d2              of the image, unique in its pool (rbd_get_id)
//   size 16777216                bytes, the most that a gateway has found
//   adoptions 0                  of the pool (control/local/pool_marker.h) when this was written
//   crc32c 8a9136aa
//
// An image without such an object is recorded when it is opened: it predates these records, or an
// administrator removed the object to confirm another image.
//
// Threads: those of an executor; calls wait for Ceph.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "rbd/images.h"
#include "rbd/rados_client.h"

namespace sluice::control {

// Where the images of a pool are recorded. Nothing else may use `pool` meanwhile (rados_object.h).
struct ImageObjects {
  std::shared_ptr<rbd::Pool> pool;
  uint32_t adoptions;  // of the pool's marker
};

// Compares the present image with the recorded one. Writes the record if there is none, if the
// image has grown, or if the pool was adopted since. Error: it is another image, it was truncated,
// or the record is damaged; with the remedy.
Result<void> verify_image(const ImageObjects& where, const std::string& location,
                          const rbd::ImageIdentity& present);
// As verify_image(), for an image that a rollback may have shrunk. Returns its size before, in
// bytes.
Result<uint64_t> verify_image_id(const ImageObjects& where, const std::string& location,
                                 const rbd::ImageIdentity& present);
// Call it when the image is deleted.
Result<void> forget_image(const ImageObjects& where, const std::string& location);

}  // namespace sluice::control
