#include "passthrough/nvme_backend.h"

#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "backend/failure.h"
#include "backend/spec.h"
#include "backend/zeros.h"
#include "passthrough/requests.h"

namespace sluice::passthrough {
namespace {

using backend::fail;
using backend::Spec;
using backend::why;

enum Identify : uint32_t { kNamespace = 0x00, kController = 0x01, kNvmController = 0x06 };

constexpr uint32_t kIdentifyTimeout = 5000;  // milliseconds
constexpr uint64_t kPage = 4096;

// "ng0n1" is the character device of "nvme0n1".
std::string block_of(dev_t device) {
  const std::string name = sysfs_name(device);
  return name.starts_with("ng") ? "nvme" + name.substr(2) : "";
}

using Page = std::array<uint8_t, kIdentifyBytes>;

// 0, an errno, or -1: the drive refused.
int identify(int fd, Identify what, uint32_t nsid, Page& page) {
  nvme_admin_cmd command = {};
  command.opcode = 0x06;
  command.nsid = nsid;
  command.addr = reinterpret_cast<uintptr_t>(page.data());
  command.data_len = static_cast<uint32_t>(page.size());
  command.cdw10 = what;
  command.timeout_ms = kIdentifyTimeout;
  page.fill(0);
  const int r = ioctl(fd, NVME_IOCTL_ADMIN_CMD, &command);
  return r < 0 ? errno : r > 0 ? -1 : 0;
}

std::string why_not(int error) {
  return error < 0 ? "the drive refuses Identify" : "Identify failed: " + why(error);
}

std::string remedy_of(int error) {
  return error == EACCES || error == EPERM
             ? "run the gateway with CAP_SYS_ADMIN, or on Linux 6.2 or later"
             : "check the drive (nvme id-ns)";
}

}  // namespace

NvmeBackend::NvmeBackend(const Spec& spec, Claim claim)
    : DeviceBackend(spec.path, std::move(claim),
                    [this](Aio& aio) { return NvmeChannel::open(aio, shared_); }) {
  shared_.fd = claim_.fd->get();
  shared_.write_cache = spec.write_cache;
}

Result<std::unique_ptr<backend::Backend>> NvmeBackend::open(const Spec& spec) {
  if (!backend::zeros()) return fail(spec.path, "no address space left", "free memory");
  Result<Claim> claimed = claim(spec.path, spec.read_only ? O_RDONLY : O_RDWR, spec.read_only,
                                "an NVMe generic device (/dev/ng0n1)", &block_of);
  if (!claimed) return Error{claimed.error()};
  std::unique_ptr<NvmeBackend> made(new NvmeBackend(spec, std::move(*claimed)));
  if (Result<void> probed = made->probe(spec); !probed) return Error{probed.error()};
  return Result<std::unique_ptr<backend::Backend>>(std::move(made));
}

Result<NvmeNamespace> NvmeBackend::identify_namespace(int fd) const {
  Page page;
  const int error = identify(fd, kNamespace, shared_.traits.nsid, page);
  if (error != 0) return fail(path_, why_not(error), remedy_of(error));
  Result<NvmeNamespace> found = parse_namespace(page);
  if (!found) return fail(path_, found.error(), "");
  return found;
}

Result<void> NvmeBackend::probe(const Spec& spec) {
  const int nsid = ioctl(shared_.fd, NVME_IOCTL_ID);
  if (nsid <= 0) {
    return fail(path_, "is no NVMe namespace", "name an NVMe generic device (/dev/ng0n1)");
  }
  NvmeTraits& traits = shared_.traits;
  traits.nsid = static_cast<uint32_t>(nsid);  // identify_namespace() asks for it
  Result<NvmeNamespace> space = identify_namespace(shared_.fd);
  if (!space) return Error{space.error()};
  if (space->block_size != spec.block_size) {
    return fail(path_, "has logical blocks of " + std::to_string(space->block_size) + " bytes",
                "use block-size=" + std::to_string(space->block_size));
  }
  if (space->write_protected && !spec.read_only) {
    return fail(path_, "is write protected", "use read-only=on");
  }
  Page page;
  const int error = identify(shared_.fd, kController, 0, page);
  if (error != 0) return fail(path_, why_not(error), remedy_of(error));
  Result<NvmeController> controller = parse_controller(page);
  if (!controller) return fail(path_, controller.error(), "");
  // Drives before NVMe 2.0 don't know it, and then have no such limit.
  const uint64_t zeroes_limit = identify(shared_.fd, kNvmController, 0, page) == 0
                                    ? parse_write_zeroes_limit(page)
                                    : uint64_t{0};

  // The kernel cuts nothing here: a command must fit into its own limits, too. Memory that isn't
  // aligned takes one segment more.
  const uint64_t segments = queue_number(claim_.block_name, "max_segments", 33);
  const uint64_t sectors = queue_number(claim_.block_name, "max_hw_sectors_kb", 128);
  const uint64_t queue = std::min((std::max<uint64_t>(segments, 2) - 1) * kPage, sectors << 10);
  traits = traits_of(traits.nsid, *controller, *space, zeroes_limit, queue);
  volatile_cache_ = traits.volatile_cache;

  size_ = space->blocks * space->block_size;
  info_.read_only = spec.read_only;
  if (!spec.read_only && (traits.deallocates || traits.discards_by_zeroes)) {
    info_.discard_granularity = space->block_size;
    info_.thin = true;
    info_.discard_zeroes = traits.discards_by_zeroes;
  }
  return {};
}

Result<void> NvmeBackend::set_write_cache(bool on) {
  if (on && !volatile_cache_) {
    return fail(path_, "the drive has no volatile write cache", "leave the write cache off");
  }
  shared_.write_cache.store(on, std::memory_order_relaxed);
  return {};
}

Result<uint64_t> NvmeBackend::present_size(int fd) const {
  Result<NvmeNamespace> space = identify_namespace(fd);
  if (!space) return Error{space.error()};
  if (space->block_size != shared_.traits.block_size) {
    return fail(path_, "was formatted with other blocks", "restart the gateway");
  }
  return space->blocks * space->block_size;
}

}  // namespace sluice::passthrough
