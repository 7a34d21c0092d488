// Storage for tests: directories on tmpfs and on a disk filesystem, loop devices, a tiny
// filesystem. The destructor removes everything. If the test program crashes, devices and mounts
// disappear with it, but a directory may stay.
#pragma once

#include <fcntl.h>
#include <linux/loop.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

namespace sluice::backend {

class ScratchDirectory {
 public:
  // `parent` must exist; skip_reason() says why it is unusable.
  explicit ScratchDirectory(const std::string& parent) {
    std::string name = parent + "/sluice-backend-XXXXXX";
    if (const char* made = mkdtemp(name.data())) {
      directory_ = made;
    } else {
      skip_reason_ = "can't make a directory in " + parent + ": " + std::strerror(errno);
    }
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    std::error_code ignored;
    if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
  }

  static bool on_tmpfs(const std::string& path) {
    struct statfs filesystem;
    return statfs(path.c_str(), &filesystem) == 0 && filesystem.f_type == TMPFS_MAGIC;
  }

  const std::string& skip_reason() const { return skip_reason_; }
  std::string file(const std::string& name) const { return directory_ + "/" + name; }
  const std::string& directory() const { return directory_; }

 private:
  std::string directory_;
  std::string skip_reason_;
};

// A loop device over a sparse file. It detaches itself when the last descriptor on it closes.
class LoopDevice {
 public:
  LoopDevice(const std::string& backing_file, uint64_t size, uint32_t block_size = 512)
      : backing_(::open(backing_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (backing_ < 0 || ftruncate(backing_, static_cast<off_t>(size)) != 0) {
      skip_reason_ = std::string("can't make a backing file: ") + std::strerror(errno);
      return;
    }
    // Another process may take the device between the query and the use.
    for (int attempt = 0; attempt < 16 && device_ < 0; ++attempt) {
      if (!attach(block_size)) break;
    }
    if (device_ < 0 && skip_reason_.empty()) skip_reason_ = "all loop devices are taken";
  }
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;
  ~LoopDevice() {
    if (device_ >= 0) ioctl(device_, LOOP_CLR_FD, 0);
    if (device_ >= 0) close(device_);
    if (backing_ >= 0) close(backing_);
  }

  const std::string& skip_reason() const { return skip_reason_; }
  const std::string& path() const { return path_; }
  bool set_size(uint64_t size) {
    return ftruncate(backing_, static_cast<off_t>(size)) == 0 &&
           ioctl(device_, LOOP_SET_CAPACITY, 0) == 0;
  }

 private:
  // False: a retry is useless.
  bool attach(uint32_t block_size) {
    const int control = ::open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    const int number = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
    const int error = errno;
    if (control >= 0) close(control);
    if (number < 0) {
      skip_reason_ = std::string("no loop devices here (needs root): ") + std::strerror(error);
      return false;
    }
    path_ = "/dev/loop" + std::to_string(number);
    const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) {
      skip_reason_ = "can't open " + path_ + ": " + std::strerror(errno);
      return false;
    }
    loop_config config = {};
    config.fd = static_cast<uint32_t>(backing_);
    config.block_size = block_size;
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
      device_ = fd;
      return true;
    }
    const bool taken = errno == EBUSY;
    if (!taken) skip_reason_ = std::string("can't attach a loop device: ") + std::strerror(errno);
    close(fd);
    return taken;
  }

  int backing_ = -1;
  int device_ = -1;
  std::string path_;
  std::string skip_reason_;
};

// A tmpfs of a given size on a directory.
class TinyFilesystem {
 public:
  TinyFilesystem(const std::string& directory, const std::string& size) : directory_(directory) {
    const std::string options = "size=" + size;
    mounted_ = mount("none", directory.c_str(), "tmpfs", 0, options.c_str()) == 0;
    if (!mounted_) skip_reason_ = std::string("can't mount: ") + std::strerror(errno);
  }
  TinyFilesystem(const TinyFilesystem&) = delete;
  TinyFilesystem& operator=(const TinyFilesystem&) = delete;
  ~TinyFilesystem() { detach(); }

  // Unmounts it from the tree at once, so that it can't leak; open files keep it alive.
  void detach() {
    if (mounted_) umount2(directory_.c_str(), MNT_DETACH);
    mounted_ = false;
  }
  const std::string& skip_reason() const { return skip_reason_; }

 private:
  std::string directory_;
  bool mounted_ = false;
  std::string skip_reason_;
};

}  // namespace sluice::backend
