// The report of a pool in a directory.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "control/local/jobs.h"

namespace sluice::control {
namespace {

constexpr int64_t kMostBytes = int64_t{64} << 40;  // of a volume
constexpr int64_t kGranularity = 4096;
constexpr const char* kSizeProbe = "probe.size";

bool can_reflink(const LocalPool& pool) {
  const char* names[] = {"probe.1", "probe.2"};
  const Result<FileDescriptor> from =
      open_beneath(pool.records(), names[0], O_RDWR | O_CREAT | O_TRUNC, 0600, pool.path());
  const Result<FileDescriptor> to =
      open_beneath(pool.records(), names[1], O_RDWR | O_CREAT | O_TRUNC, 0600, pool.path());
  const bool can = from && to && ::write(from.value().get(), "x", 1) == 1 &&
                   ::ioctl(to.value().get(), FICLONE, from.value().get()) == 0;
  for (const char* name : names) ::unlinkat(pool.records(), name, 0);
  return can;
}

// Whether the file system accepts a file of this size, without any data.
bool takes(int file, int64_t bytes) { return ::ftruncate(file, bytes) == 0; }

// Largest file size that the process may create; beyond it the kernel sends SIGXFSZ.
int64_t limit_of_process() {
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMostBytes;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, static_cast<rlim_t>(kMostBytes)));
}

}  // namespace

int64_t probe_max_image_bytes(int records) {
  const FileDescriptor file(
      ::openat(records, kSizeProbe, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return 0;
  ::unlinkat(records, kSizeProbe, 0);
  int64_t possible = 0;
  int64_t refused = limit_of_process() / kGranularity + 1;
  while (refused - possible > 1) {
    const int64_t middle = possible + (refused - possible) / 2;
    if (takes(file.get(), middle * kGranularity)) {
      possible = middle;
    } else if (errno == EFBIG || errno == EINVAL) {
      refused = middle;
    } else {
      return 0;
    }
  }
  return possible * kGranularity;
}

wire::PoolObserved observe(const std::string& uid, const LocalPool& pool) {
  wire::PoolObserved observed;
  observed.set_uid(uid);
  const Identified& identified = pool.identified();
  if (identified.marker) {
    observed.set_marker(identified.marker->id);
    observed.set_adoptions(identified.marker->adoptions);
  }
  if (!identified.doubt.empty()) {
    observed.clear_marker();
    observed.set_unidentified(true);
    observed.set_problem(identified.doubt);
    return observed;
  }
  struct statvfs space{};
  if (::fstatvfs(pool.directory(), &space) != 0) {
    observed.set_problem("can't examine " + pool.path() + ": " + reason_of(errno));
    return observed;
  }
  const auto block = static_cast<int64_t>(space.f_frsize);
  observed.set_capacity_bytes(static_cast<int64_t>(space.f_blocks) * block);
  observed.set_used_bytes(static_cast<int64_t>(space.f_blocks - space.f_bfree) * block);
  observed.set_snapshots_supported(can_reflink(pool));
  observed.set_max_image_bytes(pool.max_image_bytes());
  observed.set_lists_images(true);
  if ((space.f_flag & ST_RDONLY) != 0) {
    observed.set_problem("the filesystem of " + pool.path() +
                         " is mounted read-only; remount it writable");
  } else if (space.f_bavail == 0) {
    observed.set_problem("no space left in " + pool.path() + "; " + reason_of(ENOSPC));
  }
  return observed;
}

}  // namespace sluice::control
