// A shared mapping of a file on tmpfs. Its page cache is the storage itself, so a READ sends from
// the mapping and a WRITE copies into it, which is cheaper than preadv and pwritev.
//
// Only pages that are known to be allocated are accessed. Reading a hole through a mapping
// allocates it: reads would fill up a thin LUN, and a full tmpfs raises SIGBUS. A bitmap records
// allocated pages: it is set after writes, cleared before holes are punched, and initialized from
// the page cache once per 128 KiB. Other pages are accessed through the file descriptor. So a wrong
// "not allocated" is harmless, and a wrong "allocated" never occurs.
//
// A word of the bitmap: initialized (1 bit), unused (31), allocated, one bit per page (32).
//
// Threads: any; unit/ranges/ separates overlapping ranges (DESIGN R5); adjacent ranges share words.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace sluice::backend {

class MappedWindow {
 public:
  // Maps a file of `size` bytes, with address space for growth. nullptr: not possible, for example
  // because the address space is limited; the window is only an optimization. Does not keep the
  // descriptor.
  static std::unique_ptr<MappedWindow> open(int fd, uint64_t size, bool read_only);
  ~MappedWindow();
  MappedWindow(const MappedWindow&) = delete;
  MappedWindow& operator=(const MappedWindow&) = delete;

  // The memory of the range if all its pages are known to be allocated, else nullptr. Valid as long
  // as the window lives. Only the kernel may read it: if the file is truncated, send() fails with
  // EFAULT, but an access by the process would raise SIGBUS.
  const uint8_t* borrow(uint64_t offset, uint64_t length) const {
    return holds(offset, length) ? base_ + offset : nullptr;
  }

  bool holds(uint64_t offset, uint64_t length) const;
  // For ranges that are allocated. False: pages are missing (backend/guarded_copy.h).
  bool write(uint64_t offset, uint64_t length, const iovec* iov, uint32_t iovcnt);
  bool read(uint64_t offset, uint64_t length, const iovec* iov, uint32_t iovcnt) const;

  // Data was written there through the descriptor, so its pages are allocated.
  void mark(uint64_t offset, uint64_t length);
  // Call it before a hole is punched: the whole pages of the range will be deallocated.
  void forget(uint64_t offset, uint64_t length);

  // The file is shorter than its LUN. Its data is lost, and the mapping must not be used again.
  void retire() { retired_.store(true, std::memory_order_relaxed); }
  bool retired() const { return retired_.load(std::memory_order_relaxed); }

 private:
  MappedWindow() = default;
  bool map(int fd, uint64_t bytes, bool read_only);
  bool can_look_up() const;
  uint64_t look_up(uint64_t index) const;

  uint8_t* base_ = nullptr;
  // bytes at base_, a multiple of what a bitmap word covers
  uint64_t mapped_ = 0;
  std::atomic<uint64_t>* words_ = nullptr;  // in a separate mapping
  std::atomic<bool> retired_ = false;
};

}  // namespace sluice::backend
