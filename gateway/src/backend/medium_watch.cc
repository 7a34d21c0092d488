#include "backend/medium_watch.h"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/log.h"

namespace sluice::backend {

MediumWatch::MediumWatch(Medium medium, uint64_t size) : medium_(std::move(medium)), size_(size) {}

bool MediumWatch::grow(uint64_t size) {
  if (medium_.sentinel && !medium_.sentinel->move(medium_.fd, size)) return false;
  size_.store(size, std::memory_order_release);
  return true;
}

uint64_t MediumWatch::medium_bytes() const {
  struct stat status;
  if (fstat(medium_.fd, &status) != 0) return 0;
  if (!S_ISBLK(status.st_mode)) return static_cast<uint64_t>(status.st_size);
  uint64_t bytes = 0;
  return ioctl(medium_.fd, BLKGETSIZE64, &bytes) == 0 ? bytes : 0;
}

bool MediumWatch::is_cut_short() {
  if (is_known_cut_short()) return true;
  const uint64_t bytes = medium_bytes();
  if (stopped_.load()) return false;
  // A device of size 0 has no medium or is unreachable, which may be temporary.
  if (bytes >= medium_.base + size_bytes() || (medium_.is_device && bytes == 0)) return false;
  latch(bytes);
  return true;
}

void MediumWatch::latch(uint64_t bytes) {
  if (cut_short_.exchange(true, std::memory_order_acq_rel)) return;
  log::error("the medium of a LUN was cut short while in use; all its commands fail from now on",
             {{"path", medium_.path},
              {"bytes_expected", medium_.base + size_bytes()},
              {"bytes_now", bytes},
              {"fix", "restore the data, then restart the gateway or move the volume"}});
}

// No command extends a device: commands beyond its end fail. So only files are checked.
bool MediumWatch::has_lost_its_end() {
  if (is_known_cut_short()) return true;
  if (medium_.is_device) return false;
  if (!medium_.sentinel) return !medium_.read_only && is_cut_short();
  if (medium_.sentinel->intact()) [[likely]]
    return false;
  latch(medium_bytes());
  return true;
}

bool MediumWatch::may_extend(uint64_t end) {
  if (has_lost_its_end()) return true;
  return medium_.sentinel && medium_.sentinel->reaches_last_page(end) && is_cut_short();
}

bool MediumWatch::fails(int64_t result) {
  return result >= 0 ? has_lost_its_end() : result != -ENOMEM && is_cut_short();
}

}  // namespace sluice::backend
