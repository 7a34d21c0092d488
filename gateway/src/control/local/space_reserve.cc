#include "control/local/space_reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "control/local/files.h"

namespace sluice::control {
namespace {

constexpr const char* kReserve = "reserve";

bool has_blocks(int file) {
  struct stat status{};
  return ::fstat(file, &status) == 0 && int64_t{status.st_blocks} * 512 >= limits::kPoolReserve;
}

}  // namespace

void keep_reserve(int records) {
  const FileDescriptor file(
      ::openat(records, kReserve, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.valid() && !has_blocks(file.get())) {
    static_cast<void>(::fallocate(file.get(), 0, 0, limits::kPoolReserve));
  }
}

bool release_reserve(int records) {
  const FileDescriptor file(::openat(records, kReserve, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status{};
  if (!file.valid() || ::fstat(file.get(), &status) != 0 || status.st_blocks == 0) return false;
  return ::ftruncate(file.get(), 0) == 0 && ::fsync(file.get()) == 0;
}

}  // namespace sluice::control
