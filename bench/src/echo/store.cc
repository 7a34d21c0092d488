#include "echo/store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

#include "wire/bare.h"
#include "wire/tcp.h"

namespace sluice::bench {

Stores::Stores(const std::string& path) {
  void* block = mmap(nullptr, bare::kMaxPayload, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (block == MAP_FAILED) die("no memory for the null payload");
  null_ = static_cast<uint8_t*>(block);
  // Written once: untouched pages would all be the one zero page and cost less than real ones.
  std::memset(null_, 0x5a, bare::kMaxPayload);
  if (path.empty()) return;

  fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat info{};
  if (fd_ < 0 || fstat(fd_, &info) != 0) die("can't open " + path);
  size_ = static_cast<uint64_t>(info.st_size);
  void* map = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, 0);
  if (map == MAP_FAILED) die("can't map " + path);
  map_ = static_cast<uint8_t*>(map);
}

Stores::~Stores() {
  if (map_) munmap(map_, size_);
  if (fd_ >= 0) close(fd_);
  munmap(null_, bare::kMaxPayload);
}

bool Stores::read(uint64_t offset, uint8_t* out, uint32_t size) const {
  iovec part{out, size};
  return preadv(fd_, &part, 1, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

bool Stores::write(uint64_t offset, const uint8_t* data, uint32_t size) const {
  iovec part{const_cast<uint8_t*>(data), size};
  return pwritev(fd_, &part, 1, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

}  // namespace sluice::bench
