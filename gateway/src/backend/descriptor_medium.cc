// Whether the medium behind a descriptor is, and always was, as long as its LUN
// (gateway/decisions/local-media.md).
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>

#include "backend/descriptor.h"
#include "base/log.h"

namespace sluice::backend {

uint64_t Descriptor::medium_bytes() const {
  struct stat status;
  if (fstat(fd(), &status) != 0) return 0;
  if (!S_ISBLK(status.st_mode)) return static_cast<uint64_t>(status.st_size);
  uint64_t bytes = 0;
  return ioctl(fd(), BLKGETSIZE64, &bytes) == 0 ? bytes : 0;
}

bool Descriptor::is_cut_short() {
  if (cut_short_.load(std::memory_order_relaxed)) return true;
  const uint64_t bytes = medium_bytes();
  if (closed_.load()) return false;  // the descriptor may refer to another file by now
  // A device of size 0 has no medium or is unreachable, which may be temporary.
  if (bytes >= base_ + size_bytes() || (is_device_ && bytes == 0)) return false;
  latch_cut_short(bytes);
  return true;
}

void Descriptor::latch_cut_short(uint64_t bytes) {
  if (cut_short_.exchange(true, std::memory_order_acq_rel)) return;
  log::error("the medium of a LUN was cut short while in use; all its commands fail from now on",
             {{"path", path_},
              {"bytes_expected", base_ + size_bytes()},
              {"bytes_now", bytes},
              {"fix", "restore the data, then restart the gateway or move the volume"}});
}

// No command extends a device: commands beyond its end fail. So only files are checked.
bool Descriptor::has_lost_its_end() {
  if (cut_short_.load(std::memory_order_relaxed)) return true;
  if (is_device_) return false;
  if (!sentinel_) return !info_.read_only && is_cut_short();
  if (sentinel_->intact()) [[likely]]
    return false;
  latch_cut_short(medium_bytes());
  return true;
}

bool Descriptor::may_extend(const Io& io) {
  if (has_lost_its_end()) return true;
  return sentinel_ && sentinel_->reaches_last_page(io.offset + io.length) && is_cut_short();
}

void Descriptor::judge(Io& io) {
  if (io.result >= 0 ? has_lost_its_end() : io.result != -ENOMEM && is_cut_short()) {
    io.result = -EIO;
  }
}

}  // namespace sluice::backend
