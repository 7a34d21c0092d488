// The kernel's parameters for the queue of a block device (/sys/dev/block/M:m/queue, see
// Documentation/ABI/stable/sysfs-block).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.h"

namespace sluice::backend {

struct BlockQueue {
  uint32_t logical_block_size = 512;  // bytes
  uint32_t requests = 0;              // the most requests in the queue; 0: unknown
  uint32_t dma_alignment = 512;       // bytes
  uint32_t discard_granularity = 0;   // bytes
  uint64_t discard_alignment = 0;     // bytes
  uint64_t discard_max = 0;           // bytes; 0: no discard
  uint64_t write_zeroes_max = 0;      // bytes; 0: no write zeroes
  // Write zeroes deallocates. Only kernels since 6.17 report it; false on older ones.
  bool write_zeroes_unmaps = false;
  bool write_back = true;  // has a volatile cache; assumed if the kernel does not say
  bool rotational = false;
};

// The sysfs directory of a device or partition; it disappears with the device.
std::string block_device_directory(dev_t device);

// Error: there is no such device, for example for the st_dev of a network filesystem.
Result<BlockQueue> read_block_queue(dev_t device);

}  // namespace sluice::backend
