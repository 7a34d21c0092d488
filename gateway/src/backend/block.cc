#include "backend/block.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "backend/atomic_write.h"
#include "backend/failure.h"
#include "backend/lock.h"
#include "backend/size_text.h"
#include "backend/zeros.h"
#include "base/limits.h"

namespace sluice::backend {
namespace {

Result<FileDescriptor> open_exclusively(const Spec& spec, dev_t device) {
  OpenFile::wait_for_closing(device, limits::kUnitLeaves);
  FileDescriptor fd(::open(spec.path.c_str(),
                           (spec.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_EXCL | O_DIRECT));
  if (fd.valid()) return fd;
  const int error = errno;
  if (error == EBUSY) {
    return fail(spec.path, "is in use: " + describe_device_user(device, spec.path), "");
  }
  std::string remedy = "check the device";
  if (error == EACCES || error == EPERM) remedy = "give the gateway's user access to it";
  if (error == EROFS) remedy = "use read-only=on";
  return fail(spec.path, "can't open: " + why(error), remedy);
}

Result<uint64_t> size_of(int fd, const std::string& path) {
  uint64_t bytes = 0;
  if (ioctl(fd, BLKGETSIZE64, &bytes) == 0) return bytes;
  return fail(path, "can't tell its size: " + why(errno), "check that the device is connected");
}

// The bytes of a device that a LUN can use: whole blocks, behind the reserved area.
uint64_t usable_of(uint64_t device, uint64_t reserved, uint32_t block_size) {
  const uint64_t rest = device > reserved ? device - reserved : 0;
  return rest - rest % block_size;
}

Result<uint64_t> adopt_size(int fd, const Spec& spec, uint64_t reserved) {
  Result<uint64_t> device = size_of(fd, spec.path);
  if (!device) return device;
  const uint64_t usable = usable_of(*device, reserved, spec.block_size);
  if (usable == 0) return fail(spec.path, "is empty", "attach a medium");
  if (spec.size > usable) {
    return fail(spec.path,
                "holds " + format_size(usable) + ", less than size=" + format_size(spec.size),
                "lower size= or leave it out");
  }
  return spec.size != 0 ? spec.size : usable;
}

// Offset of the first deallocation unit from the LUN's first byte.
uint64_t discard_alignment(const BlockQueue& queue, uint64_t reserved) {
  const uint64_t unit = queue.discard_granularity;
  if (unit == 0) return queue.discard_alignment;
  return (queue.discard_alignment % unit + unit - reserved % unit) % unit;
}

Info describe(const Spec& spec, const BlockQueue& queue, uint64_t reserved) {
  Info info;
  info.memory_alignment = queue.dma_alignment;
  info.read_only = spec.read_only;
  info.rotational = queue.rotational;
  if (queue.discard_max > 0 && !spec.read_only) {
    info.discard_granularity = std::max(queue.discard_granularity, spec.block_size);
    info.discard_alignment =
        reserved == 0 ? queue.discard_alignment : discard_alignment(queue, reserved);
    info.thin = true;
    // BLKDISCARD guarantees no content; a deallocating write of zeros does.
    info.discard_zeroes = queue.write_zeroes_unmaps;
  }
  return info;
}

}  // namespace

Result<std::unique_ptr<Backend>> Block::open(const Spec& spec, uint64_t reserved) {
  if (!zeros()) return fail(spec.path, "no address space left", "free memory");
  struct stat status;
  if (stat(spec.path.c_str(), &status) != 0) {
    return fail(spec.path, why(errno), "name an existing block device");
  }
  if (!S_ISBLK(status.st_mode)) {
    return fail(spec.path, "is no block device",
                S_ISREG(status.st_mode) ? "use file:" + spec.path : "name a block device");
  }
  Result<FileDescriptor> fd = open_exclusively(spec, status.st_rdev);
  if (!fd) return Error{fd.error()};
  Result<BlockQueue> queue = read_block_queue(status.st_rdev);
  if (!queue) return fail(spec.path, queue.error(), "");
  if (queue->logical_block_size > spec.block_size) {
    return fail(spec.path,
                "has logical blocks of " + std::to_string(queue->logical_block_size) +
                    " bytes, more than block-size=" + std::to_string(spec.block_size),
                "use block-size=" + std::to_string(queue->logical_block_size));
  }
  Result<uint64_t> size = adopt_size(fd->get(), spec, reserved);
  if (!size) return Error{size.error()};

  Setup setup;
  setup.fd = std::move(*fd);
  setup.info = describe(spec, *queue, reserved);
  setup.is_device = true;
  setup.base = reserved;
  const AtomicWrites atomic = atomic_writes_of(setup.fd.get(), spec.block_size);
  setup.info.atomic_write_bytes = atomic.bytes;
  setup.atomic_segments = atomic.segments;
  setup.size = *size;
  setup.discard = setup.info.discard_zeroes ? RangeMethod::kPunchHole : RangeMethod::kDeviceDiscard;
  std::unique_ptr<Block> block(
      new Block(spec, std::move(setup), status.st_rdev, queue->write_back));
  // The kernel would answer EOPNOTSUPP; kZeroRange has its own fallback.
  if (queue->write_zeroes_max == 0) block->refuse(RangeMethod::kPunchHole);
  return Result<std::unique_ptr<Backend>>(std::move(block));
}

Result<void> Block::set_write_cache(bool on) {
  if (on && !write_back_) {
    return fail(path(), "the drive's own write cache is off", "turn that on first");
  }
  return Descriptor::set_write_cache(on);
}

Result<Extent> Block::allocation(uint64_t offset, uint64_t limit) const {
  const uint64_t size = size_bytes();
  if (limit == 0 || offset >= size) return Error{"allocation asked beyond the end"};
  return Extent{std::min(limit, size - offset), true};
}

Result<uint64_t> Block::usable_size() const {
  Result<uint64_t> device = size_of(fd(), path());
  if (!device) return device;
  return usable_of(*device, base(), block_size());
}

Result<void> Block::resize(uint64_t new_size) {
  Result<uint64_t> found = usable_size();
  if (!found) return Error{found.error()};
  const uint64_t usable = *found;
  if (new_size > usable || (new_size != usable && new_size != 0 && !is_part_)) {
    return fail(path(),
                "the device holds " + format_size(usable) + ", not " + format_size(new_size),
                "resize the device first");
  }
  if (new_size != 0 && new_size < size_bytes()) {
    return fail(path(), "a LUN only grows, and this one has " + format_size(size_bytes()), "");
  }
  if (medium().is_cut_short()) {
    return fail(
        path(),
        "the device shrank from " + format_size(size_bytes()) + " to " + format_size(usable),
        "restore its size and data, then restart the gateway");
  }
  medium().grow(new_size != 0 ? new_size : usable);
  return {};
}

Result<void> Block::check() {
  const std::string directory = block_device_directory(device_);
  if (access(directory.c_str(), F_OK) != 0) {
    return fail(path(), "the device is gone", "reconnect it and restart the gateway");
  }
  // SCSI disks stay listed while they are unreachable.
  std::string state;
  std::ifstream state_file(directory + "/device/state");
  if (std::getline(state_file, state) && (state == "offline" || state == "transport-offline")) {
    return fail(path(), "the device is " + state, "check its cables and power");
  }
  Result<uint64_t> device = usable_size();
  if (!device) return Error{device.error()};
  if (medium().is_cut_short()) {
    return fail(path(),
                "the device shrank below its " + format_size(size_bytes()) + " while in use",
                "restore its size and data, then restart the gateway");
  }
  if (*device < size_bytes()) return fail(path(), "the device has no medium", "reconnect it");
  return {};
}

}  // namespace sluice::backend
