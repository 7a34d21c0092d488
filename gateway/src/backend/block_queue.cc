#include "backend/block_queue.h"

#include <sys/sysmacros.h>
#include <unistd.h>

#include <fstream>

namespace sluice::backend {
namespace {

uint64_t read_number(const std::string& file, uint64_t otherwise) {
  std::ifstream in(file);
  uint64_t number = 0;
  return in >> number ? number : otherwise;
}

}  // namespace

std::string block_device_directory(dev_t device) {
  return "/sys/dev/block/" + std::to_string(major(device)) + ":" + std::to_string(minor(device));
}

Result<BlockQueue> read_block_queue(dev_t device) {
  const std::string directory = block_device_directory(device);
  std::string queue = directory + "/queue/";
  // A partition shares the queue of its disk.
  if (access(queue.c_str(), F_OK) != 0) queue = directory + "/../queue/";
  if (access(queue.c_str(), F_OK) != 0) {
    return Error{directory + " has no queue; mount sysfs on /sys"};
  }
  BlockQueue result;
  result.logical_block_size = static_cast<uint32_t>(read_number(queue + "logical_block_size", 512));
  result.requests = static_cast<uint32_t>(read_number(queue + "nr_requests", 0));
  // A mask. Kernels before 6.0 do not report it; a logical block is always sufficient.
  result.dma_alignment = static_cast<uint32_t>(
      read_number(queue + "dma_alignment", result.logical_block_size - 1) + 1);
  result.discard_granularity = static_cast<uint32_t>(read_number(queue + "discard_granularity", 0));
  result.discard_alignment = read_number(directory + "/discard_alignment", 0);
  result.discard_max = read_number(queue + "discard_max_bytes", 0);
  result.write_zeroes_max = read_number(queue + "write_zeroes_max_bytes", 0);
  result.write_zeroes_unmaps = read_number(queue + "write_zeroes_unmap_max_bytes", 0) > 0;
  result.rotational = read_number(queue + "rotational", 0) != 0;
  std::string cache;
  std::ifstream cache_file(queue + "write_cache");
  if (std::getline(cache_file, cache)) result.write_back = cache == "write back";
  return result;
}

}  // namespace sluice::backend
