#include "control/local/pool_observation.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "control/local/space_reserve.h"

namespace sluice::control {
namespace {

bool can_reflink(const PoolDirectory& pool) {
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

}  // namespace

wire::PoolObserved observe(const std::string& uid, const PoolDirectory& pool) {
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
  keep_reserve(pool.records());
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
