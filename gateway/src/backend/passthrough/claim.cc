#include "passthrough/claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>

#include "backend/failure.h"
#include "backend/lock.h"

namespace sluice::passthrough {
namespace {

using backend::fail;
using backend::why;

std::string remedy_of(int error) {
  if (error == EACCES || error == EPERM) return "give the gateway's user access to it";
  if (error == EROFS) return "use read-only=on";
  return "check the device";
}

Result<FileDescriptor> open_block(const std::string& path, const std::string& name,
                                  bool read_only) {
  const std::string node = "/dev/" + name;
  FileDescriptor fd(::open(node.c_str(), O_RDONLY | O_CLOEXEC | (read_only ? 0 : O_EXCL)));
  if (fd.valid()) return fd;
  const int error = errno;
  struct stat status = {};
  // Without a medium there is nothing to mount.
  if (error == ENOMEDIUM || error == ENOENT) return FileDescriptor();
  if (error == EBUSY && stat(node.c_str(), &status) == 0) {
    return fail(path,
                "is in use: " + node + " is " + backend::describe_device_user(status.st_rdev, node),
                "");
  }
  return fail(path, "can't open " + node + ", which is the same medium: " + why(error),
              remedy_of(error));
}

}  // namespace

Result<Claim> claim(const std::string& path, int mode, bool read_only, const std::string& what,
                    FindBlock find_block) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return fail(path, why(errno), "name " + what);
  if (!S_ISCHR(status.st_mode)) {
    return fail(path, "is no character device",
                "name " + what + (S_ISBLK(status.st_mode) ? ", or use block:" + path : ""));
  }
  Claim claim;
  claim.device = status.st_rdev;
  claim.fd = std::make_shared<FileDescriptor>(::open(path.c_str(), mode | O_CLOEXEC | O_NONBLOCK));
  if (!claim.fd->valid()) {
    const int error = errno;
    return fail(path, "can't open: " + why(error), remedy_of(error));
  }
  if (Result<void> locked = backend::lock_file(claim.fd->get(), path, read_only); !locked) {
    return Error{locked.error()};
  }
  claim.block_name = find_block(claim.device);
  if (claim.block_name.empty()) return claim;
  Result<FileDescriptor> block = open_block(path, claim.block_name, read_only);
  if (!block) return Error{block.error()};
  claim.block = std::move(*block);
  return claim;
}

void Claim::release() {
  if (fd) flock(fd->get(), LOCK_UN);
  fd.reset();
  block = FileDescriptor();
}

uint64_t queue_number(const std::string& block_name, const char* file, uint64_t otherwise) {
  std::ifstream in("/sys/class/block/" + block_name + "/queue/" + file);
  uint64_t number = 0;
  return in >> number ? number : otherwise;
}

}  // namespace sluice::passthrough
