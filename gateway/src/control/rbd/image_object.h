// Which image of Ceph is a volume's, so that another image of the same name is not served instead:
// an image that was created again, or a copy. The object `sluice.image.<location>` beside the
// image:
//
//   sluice-rbd-image 1
//   id 10a5c3b7f1d2              of the image, unique in its pool (rbd_get_id)
//   size 16777216                bytes, the most that a gateway has found
//   adoptions 0                  of the pool (control/local/pool_marker.h) when this was written
//   crc32c 8a9136aa
//
// An image without such an object is recorded when it is opened: it is older than these records, or
// an administrator removed the object to confirm another image.
//
// Threads: workers; calls wait for Ceph.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "rbd/images.h"
#include "rbd/rados_client.h"

namespace sluice::control {

// Where a pool's images are recorded. `pool` belongs to these calls alone (rados_object.h).
struct ImageObjects {
  std::shared_ptr<rbd::Pool> pool;
  uint32_t adoptions;  // of the pool's marker
};

// Compares the present image with the recorded one. Records it where there is no record, where it
// has grown, or where the pool was adopted since. Error: it is another image, has lost its end, or
// the record is damaged; with the fix.
Result<void> verify_image(const ImageObjects& where, const std::string& location,
                          const rbd::ImageIdentity& present);
// As verify_image(), for an image that a rollback may have made smaller. Gives the size that it had
// before, in bytes.
Result<uint64_t> verify_image_id(const ImageObjects& where, const std::string& location,
                                 const rbd::ImageIdentity& present);
// The image is deleted.
Result<void> forget_image(const ImageObjects& where, const std::string& location);

}  // namespace sluice::control
