// Having a character device to oneself (DESIGN R2): an flock on the description that does the I/O,
// and O_EXCL on the block device that the kernel makes of the same medium, so that nobody mounts it
// or exports it as `block:`.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "backend/descriptor.h"
#include "base/result.h"

namespace sluice::passthrough {

struct Claim {
  // The character device. Shared with questions that are being asked: who closes doesn't wait.
  std::shared_ptr<backend::FileDescriptor> fd;
  backend::FileDescriptor block;  // may be none: a SCSI device without a driver
  dev_t device = 0;               // of fd
  std::string block_name;         // sda, nvme0n1; empty: none

  void release();  // the locks at once, descriptors as soon as nobody uses them
};

// Finds the block device that belongs to a character device, by name below /dev; empty: none.
using FindBlock = std::string (*)(dev_t device);

// `what` names the kind in errors: "a SCSI generic device (/dev/sgN)". `mode`: O_RDONLY or O_RDWR;
// O_NONBLOCK is added.
Result<Claim> claim(const std::string& path, int mode, bool read_only, const std::string& what,
                    FindBlock find_block);

// Of /sys/class/block/NAME/queue; `otherwise` where there is none.
uint64_t queue_number(const std::string& block_name, const char* file, uint64_t otherwise);

}  // namespace sluice::passthrough
