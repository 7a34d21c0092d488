#include "state_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/log.h"

namespace sluice {
namespace {

// Empty: unknown. A line is "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF" (proc_locks(5)).
std::string holder_of(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return {};
  const std::string inode = ':' + std::to_string(status.st_ino);
  std::ifstream locks("/proc/locks");
  std::string line;
  while (std::getline(locks, line)) {
    std::istringstream words(line);
    std::string number, type, kind, access, pid, where;
    if (words >> number >> type >> kind >> access >> pid >> where && type == "FLOCK" &&
        where.ends_with(inode) && pid != "0") {
      return pid;
    }
  }
  return {};
}

}  // namespace

Result<void> lock_state_directory(const std::string& path, StateLock* lock) {
  const auto unusable = [&path](const std::string& why) {
    // It would serve, but not after a restart while the control plane is away (DESIGN R3).
    return Error{"the state directory " + path + " can't be used: " + why + "; give --state-dir"};
  };
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (!failed) std::filesystem::permissions(path, std::filesystem::perms::owner_all, failed);
  if (failed) return unusable(failed.message());
  lock->directory = FileDescriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const int fd = lock->directory.get();
  if (fd < 0) return unusable(std::strerror(errno));
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) {
    log::warning("the state directory can't be locked: a second process on it goes unnoticed",
                 {{"directory", path}, {"error", std::strerror(errno)}});
    return {};
  }
  lock->in_use = true;
  const std::string pid = holder_of(fd);
  return Error{"the state directory " + path + " is in use by " +
               (pid.empty() ? std::string("another process") : "process " + pid) +
               ": this gateway runs already; stop that process, or give this one another "
               "--gateway-name and --state-dir"};
}

}  // namespace sluice
