#include "passthrough/sg_backend.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "backend/failure.h"
#include "backend/spec.h"
#include "backend/zeros.h"
#include "passthrough/requests.h"
#include "passthrough/sg_device.h"

namespace sluice::passthrough {
namespace {

using backend::fail;
using backend::Spec;

constexpr unsigned kUsualDepth = 16;

std::string device_directory(dev_t device) {
  return "/sys/class/scsi_generic/" + sysfs_name(device) + "/device";
}

// "sda" of the same device; empty: no disk driver has it.
std::string block_of(dev_t device) {
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(device_directory(device) + "/block", ignored)) {
    return entry.path().filename();
  }
  return {};
}

unsigned depth_of(dev_t device) {
  std::ifstream in(device_directory(device) + "/queue_depth");
  unsigned depth = 0;
  return in >> depth && depth > 0 ? depth : kUsualDepth;
}

// Bytes that the sg driver takes at once; 0: it doesn't say.
uint64_t queue_of(int fd) {
  int queue = 0;
  return ioctl(fd, BLKSECTGET, &queue) == 0 && queue > 0 ? static_cast<uint64_t>(queue) : 0;
}

}  // namespace

SgBackend::SgBackend(const Spec& spec, Claim claim)
    : DeviceBackend(spec.path, std::move(claim),
                    [this](Aio& aio) { return SgChannel::open(aio, shared_); }) {
  shared_.fd = claim_.fd->get();
  shared_.queue_depth = depth_of(claim_.device);
  shared_.write_cache = spec.write_cache;
}

Result<std::unique_ptr<backend::Backend>> SgBackend::open(const Spec& spec) {
  if (!backend::zeros()) return fail(spec.path, "no address space left", "free memory");
  // Commands go by write(2), those that read, too.
  Result<Claim> claimed =
      claim(spec.path, O_RDWR, spec.read_only, "a SCSI generic device (/dev/sg0)", &block_of);
  if (!claimed) return Error{claimed.error()};
  std::unique_ptr<SgBackend> made(new SgBackend(spec, std::move(*claimed)));
  if (Result<void> probed = made->probe(spec); !probed) return Error{probed.error()};
  return Result<std::unique_ptr<backend::Backend>>(std::move(made));
}

Result<void> SgBackend::probe(const Spec& spec) {
  int version = 0;
  if (ioctl(shared_.fd, SG_GET_VERSION_NUM, &version) != 0 || version < 30000) {
    return fail(path_, "is no SCSI generic device", "name one (/dev/sg0)");
  }
  Result<ScsiMedium> found = SgDevice(shared_.fd, path_).query();
  if (!found) return Error{found.error()};
  const ScsiMedium& medium = *found;
  if (medium.block_size != spec.block_size) {
    return fail(path_, "has logical blocks of " + std::to_string(medium.block_size) + " bytes",
                "use block-size=" + std::to_string(medium.block_size));
  }
  if (medium.write_protected && !spec.read_only) {
    return fail(path_, "is write protected", "use read-only=on");
  }
  shared_.traits = traits_of(medium, queue_of(shared_.fd));
  volatile_cache_ = medium.volatile_cache;
  size_ = medium.blocks * medium.block_size;
  info_.takes_cdbs = true;
  info_.read_only = spec.read_only;
  info_.rotational = medium.rotational;
  info_.thin = medium.thin;
  if (!spec.read_only && medium.thin && (medium.unmap || medium.write_same_unmap)) {
    info_.discard_granularity = discard_granularity(medium);
    info_.discard_alignment = uint64_t{medium.unmap_alignment} * medium.block_size;
    info_.discard_zeroes = shared_.traits.discards_by_write_same;
  }
  return {};
}

Result<void> SgBackend::set_write_cache(bool on) {
  if (on && !volatile_cache_) {
    return fail(path_, "the device's own write cache is off", "turn that on first (sdparm)");
  }
  shared_.write_cache.store(on, std::memory_order_relaxed);
  return {};
}

Result<uint64_t> SgBackend::present_size(int fd) const {
  Result<ScsiMedium> found = SgDevice(fd, path_).capacity();
  if (!found) return Error{found.error()};
  if (found->block_size != shared_.traits.medium.block_size) {
    return fail(path_, "was formatted with other blocks", "restart the gateway");
  }
  return found->blocks * found->block_size;
}

}  // namespace sluice::passthrough
