#include "backend/lock.h"

#include <dirent.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/safety_mutation.h"

namespace sluice::backend {
namespace {

namespace fs = std::filesystem;

std::string describe_process(const std::string& pid) {
  std::string name;
  std::ifstream comm("/proc/" + pid + "/comm");
  std::getline(comm, name);
  return "process " + pid + (name.empty() ? "" : " (" + name + ")");
}

std::string device_number(dev_t device) {
  return std::to_string(major(device)) + ":" + std::to_string(minor(device));
}

// The mount point of a filesystem on the device; empty when there is none.
std::string mount_point(dev_t device) {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    // id parent major:minor root mountpoint ...
    std::istringstream fields(line);
    std::string id, parent, number, root, point;
    if (fields >> id >> parent >> number >> root >> point && number == device_number(device)) {
      return point;
    }
  }
  return {};
}

std::string stacked_device(dev_t device) {
  std::error_code ignored;
  for (const auto& entry :
       fs::directory_iterator("/sys/dev/block/" + device_number(device) + "/holders", ignored)) {
    return entry.path().filename();
  }
  return {};
}

bool has_device_open(const fs::path& process, dev_t device) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(process / "fd", ignored)) {
    struct stat status;
    if (stat(entry.path().c_str(), &status) == 0 && S_ISBLK(status.st_mode) &&
        status.st_rdev == device) {
      return true;
    }
  }
  return false;
}

std::string process_with_device_open(dev_t device) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (has_device_open(entry.path(), device)) return describe_process(pid);
  }
  return {};
}

}  // namespace

Result<void> lock_file(int fd, const std::string& path, bool shared) {
  if (mutation_disables(Guard::kLock) || mutation_disables(Guard::kFence) ||
      mutation_disables(Guard::kOneOwner))
    return {};
  if (flock(fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0) return {};
  const int error = errno;
  struct stat status = {};
  if (error != EWOULDBLOCK || fstat(fd, &status) != 0) {
    return Error{path + ": can't lock: " + std::strerror(error) +
                 "; put it on a filesystem with flock support"};
  }
  return Error{path + " is in use by " + describe_lock_holder(status.st_dev, status.st_ino) +
               ", which holds a lock on it; stop that first"};
}

std::string describe_lock_holder(dev_t device, ino_t inode) {
  // 1: FLOCK  ADVISORY  WRITE 6555 fe:00:9977917 0 EOF
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    int pid = 0;
    unsigned device_major = 0;
    unsigned device_minor = 0;
    uint64_t number = 0;
    if (std::sscanf(line.c_str(), "%*s FLOCK %*s %*s %d %x:%x:%" SCNu64, &pid, &device_major,
                    &device_minor, &number) == 4 &&
        pid > 0 && device_major == major(device) && device_minor == minor(device) &&
        number == inode) {
      return describe_process(std::to_string(pid));
    }
  }
  return "another process";
}

std::string describe_device_user(dev_t device, const std::string& path) {
  if (std::string point = mount_point(device); !point.empty()) {
    return "mounted on " + point + "; umount " + point;
  }
  if (std::string stacked = stacked_device(device); !stacked.empty()) {
    return "part of device " + stacked + "; stop that first";
  }
  if (std::string process = process_with_device_open(device); !process.empty()) {
    return "open in " + process + "; stop that first";
  }
  return "held by something that /proc doesn't show (another namespace?); see lsof " + path;
}

}  // namespace sluice::backend
