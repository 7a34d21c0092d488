#include "control/local/file_size_limit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "control/local/files.h"

namespace sluice::control {
namespace {

constexpr int64_t kMostBytes = int64_t{64} << 40;  // of a volume
constexpr int64_t kGranularity = 4096;
constexpr const char* kSizeProbe = "probe.size";

// Whether the file system accepts a file of this size, without any data.
bool takes(int file, int64_t bytes) { return ::ftruncate(file, bytes) == 0; }

// Largest file size that the process may create; beyond it the kernel sends SIGXFSZ.
int64_t limit_of_process() {
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMostBytes;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, static_cast<rlim_t>(kMostBytes)));
}

}  // namespace

int64_t probe_max_file_bytes(int directory) {
  const FileDescriptor file(
      ::openat(directory, kSizeProbe, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return 0;
  ::unlinkat(directory, kSizeProbe, 0);
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

}  // namespace sluice::control
