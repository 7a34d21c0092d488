// Exclusive use of a character device (DESIGN R2): an flock on the description that does the I/O,
// and O_EXCL on the block device of the same medium, so that it can't be mounted or exported as
// `block:`.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace sluice::passthrough {

struct Claim {
  // The character device. Shared with queries in progress, so that a close need not wait for them.
  std::shared_ptr<FileDescriptor> fd;
  FileDescriptor block;    // invalid for a SCSI device without a block driver
  dev_t device = 0;        // of fd
  std::string block_name;  // sda, nvme0n1; empty: none

  void release();  // releases the locks immediately; descriptors close when they are no longer used
};

// Finds the block device of a character device and returns its name below /dev; empty: none.
using FindBlock = std::string (*)(dev_t device);

// `what` describes the kind in errors: "a SCSI generic device (/dev/sgN)". `mode`: O_RDONLY or
// O_RDWR; O_NONBLOCK is added.
Result<Claim> claim(const std::string& path, int mode, bool read_only, const std::string& what,
                    FindBlock find_block);

// Reads /sys/class/block/NAME/queue/`file`; `otherwise`: there is none.
uint64_t queue_number(const std::string& block_name, const char* file, uint64_t otherwise);

}  // namespace sluice::passthrough
