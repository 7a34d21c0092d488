// A file on tmpfs, seen through a shared mapping. Its page cache is the store itself: a READ is
// sent from there and a WRITE copied straight into it, for what preadv and pwritev cost less.
//
// Only pages known to be allocated are touched. Touching a hole of a mapped tmpfs file allocates
// it, even for reading: a thin LUN would fill up by being read, and a full tmpfs answers SIGBUS.
// What is allocated is kept in a bitmap of our own: set after writes, cleared before holes are
// punched, and looked up in the page cache once per 128 KiB. What isn't known to be allocated goes
// the way of the file descriptor. The bitmap errs on that side only.
//
//   word of the bitmap: | looked up (1) | unused (31) | allocated, one bit per page (32) |
//
// Threads: any; unit/ranges/ keeps overlapping ranges apart (DESIGN R5), neighbours share words.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace sluice::backend {

class MappedWindow {
 public:
  // Of a file of `size` bytes, with address space for it to grow. nullptr where that can't be had
  // (a limited address space, for example): the window only makes things faster. Keeps no hold of
  // the descriptor.
  static std::unique_ptr<MappedWindow> open(int fd, uint64_t size, bool read_only);
  ~MappedWindow();
  MappedWindow(const MappedWindow&) = delete;
  MappedWindow& operator=(const MappedWindow&) = delete;

  // The range's memory when all its pages are known to be allocated, else nullptr. Stays where it
  // is as long as the window lives. For the kernel to read from, not for us: should the file be
  // truncated, send() fails with EFAULT where our own access would be a SIGBUS.
  const uint8_t* borrow(uint64_t offset, uint64_t length) const {
    return holds(offset, length) ? base_ + offset : nullptr;
  }

  bool holds(uint64_t offset, uint64_t length) const;
  // For ranges it holds. False: pages are gone, see backend/guarded_copy.h.
  bool write(uint64_t offset, uint64_t length, const iovec* iov, uint32_t iovcnt);
  bool read(uint64_t offset, uint64_t length, const iovec* iov, uint32_t iovcnt) const;

  // Data was written there through the descriptor: its pages are allocated.
  void mark(uint64_t offset, uint64_t length);
  // To be called before a hole is punched there: whole pages of the range will be deallocated.
  void forget(uint64_t offset, uint64_t length);

  // The file was found shorter than its LUN. Its data is lost and it mustn't be touched again.
  void retire() { retired_.store(true, std::memory_order_relaxed); }
  bool retired() const { return retired_.load(std::memory_order_relaxed); }

 private:
  MappedWindow() = default;
  bool map(int fd, uint64_t bytes, bool read_only);
  bool can_look_up() const;
  uint64_t look_up(uint64_t index) const;

  uint8_t* base_ = nullptr;
  uint64_t mapped_ = 0;                     // bytes at base_, whole words of the bitmap
  std::atomic<uint64_t>* words_ = nullptr;  // in a mapping of their own
  std::atomic<bool> retired_ = false;
};

}  // namespace sluice::backend
