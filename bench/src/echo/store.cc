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

namespace {

// Written once: untouched pages would all be the one zero page and cost less than real ones.
uint8_t* written_memory(uint64_t size) {
  void* block = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (block == MAP_FAILED) die("no memory");
  std::memset(block, 0x5a, size);
  return static_cast<uint8_t*>(block);
}

}  // namespace

Stores::Stores(uint64_t memory, const std::string& path)
    : null_(written_memory(bare::kMaxPayload)), memory_size_(memory) {
  if (memory > 0) memory_ = written_memory(memory);
  if (path.empty()) return;

  fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat info{};
  if (fd_ < 0 || fstat(fd_, &info) != 0) die("can't open " + path);
  file_size_ = static_cast<uint64_t>(info.st_size);
}

Stores::~Stores() {
  if (memory_) munmap(memory_, memory_size_);
  if (fd_ >= 0) close(fd_);
  munmap(null_, bare::kMaxPayload);
}

uint64_t Stores::size(bare::Store store) const {
  if (store == bare::Store::kNull) return UINT64_MAX;
  return store == bare::Store::kMemory ? memory_size_ : file_size_;
}

bool Stores::holds(bare::Store store, uint64_t offset, uint32_t size) const {
  const uint64_t end = this->size(store);
  return offset <= end && size <= end - offset;
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
