#include "control/local/files.h"

#include <fcntl.h>
#include <isa-l/crc.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

namespace sluice::control {
namespace {

// errno stays.
Error failed(const char* what, const std::string& shown) {
  const int error = errno;
  Error failure{"can't " + std::string(what) + ' ' + shown + ": " + reason_of(error)};
  errno = error;
  return failure;
}

std::string remedy_of(int error) {
  switch (error) {
    case ENOSPC:
      return "free space on the filesystem or add to it";
    case EDQUOT:
      return "raise the quota of the gateway's user";
    case ENOENT:
      return "check that the filesystem is mounted and the name is right";
    case EACCES:
    case EPERM:
      return "give the gateway's user access to it";
    case EROFS:
      return "remount the filesystem writable";
    case EXDEV:
    case ELOOP:
      return "use a path below the pool's directory, without `..` and symbolic links";
    case EIO:
      return "check the disk";
    case EFBIG:
      return "the filesystem's limit is lower: choose a smaller size";
    default:
      return {};
  }
}

// Only an empty file can get this flag. Other file systems refuse it, and then overwrite in place
// anyway, or always copy.
void avoid_copy_on_write(int file) {
  int flags = 0;
  if (::ioctl(file, FS_IOC_GETFLAGS, &flags) != 0) return;
  flags |= FS_NOCOW_FL;
  ::ioctl(file, FS_IOC_SETFLAGS, &flags);
}

Result<void> write_whole(int directory, const std::string& name, std::string_view text,
                         const std::string& shown, Outlasts outlasts, Updates updates) {
  const FileDescriptor file(::openat(directory, name.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return failed("create", shown);
  if (updates == Updates::kInPlace) avoid_copy_on_write(file.get());
  while (!text.empty()) {
    const ssize_t n = ::write(file.get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("write", shown);
    text.remove_prefix(static_cast<size_t>(n));
  }
  if (outlasts == Outlasts::kPowerCut && ::fsync(file.get()) != 0) return failed("sync", shown);
  return {};
}

}  // namespace

bool is_out_of_space(int error) { return error == ENOSPC || error == EDQUOT; }

std::string reason_of(int error) {
  const std::string remedy = remedy_of(error);
  return std::string(std::strerror(error)) + (remedy.empty() ? "" : "; " + remedy);
}

Result<FileDescriptor> open_directory(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return failed("open the directory", path);
  return fd;
}

Result<FileDescriptor> open_beneath(int directory, const std::string& path, int flags, mode_t mode,
                                    const std::string& shown) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC;
  how.mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  for (int tries = 0; tries < 16; ++tries) {
    const long fd = ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how);
    if (fd >= 0) return FileDescriptor(static_cast<int>(fd));
    if (errno != EAGAIN) break;  // a component was renamed during the lookup
  }
  return failed("open", shown);
}

Result<void> replace_file(int directory, const std::string& name, std::string_view text,
                          const std::string& shown, bool* renamed, Outlasts outlasts,
                          Updates updates) {
  if (renamed != nullptr) *renamed = false;
  const std::string beside = name + ".new";
  Result<void> written = write_whole(directory, beside, text, shown, outlasts, updates);
  if (!written) return written;
  if (renamed != nullptr) *renamed = true;
  if (::renameat(directory, beside.c_str(), directory, name.c_str()) != 0) {
    return failed("rename to", shown);
  }
  if (outlasts == Outlasts::kPowerCut && ::fsync(directory) != 0)
    return failed("sync the directory of", shown);
  return {};
}

Result<std::optional<std::string>> read_small_file(int directory, const std::string& name,
                                                   size_t limit, const std::string& shown) {
  const FileDescriptor file(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid() && errno == ENOENT) return std::optional<std::string>();
  if (!file.valid()) return failed("open", shown);
  std::string text;
  char block[16384];
  for (;;) {
    const ssize_t n = ::read(file.get(), block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("read", shown);
    if (n == 0) return std::optional(std::move(text));
    text.append(block, static_cast<size_t>(n));
    if (text.size() > limit) {
      errno = EFBIG;
      return failed("read", shown);
    }
  }
}

Result<FileDescriptor> guard_file(int directory, const std::string& name, const std::string& shown,
                                  Nanos patience) {
  FileDescriptor file(
      ::openat(directory, name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return failed("guard", shown);
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(patience);
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return failed("guard", shown);
    if (std::chrono::steady_clock::now() >= end) {
      return Error{"can't write " + shown +
                   ": another writer of it is at it still; check the disk"};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return file;
}

}  // namespace sluice::control
