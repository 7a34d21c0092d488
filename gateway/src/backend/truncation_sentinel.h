// Detects that a file was truncated, even if the file has its length again. A private page is
// mapped over the file's last page and holds a mark. When a file shrinks, the kernel drops all
// mapped pages behind the new end, private ones included, before another write can extend the
// file. A missing mark therefore proves a truncation. Reading the mark takes no system call.
// (gateway/decisions/local-media.md)
//
// Not detected: a truncation within the last page, because that page stays mapped. Before the
// writes that reaches_last_page() names, the caller must query the file's size.
//
// Threads: any; move() on one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace sluice::backend {

class TruncationSentinel {
 public:
  // For a file of `size` bytes, > 0. nullptr: the file can't be opened again for reading or mapped,
  // or is shorter. The mapping does not extend the life of a lock on `fd`.
  static std::unique_ptr<TruncationSentinel> create(int fd, uint64_t size);
  ~TruncationSentinel();
  TruncationSentinel(const TruncationSentinel&) = delete;
  TruncationSentinel& operator=(const TruncationSentinel&) = delete;

  // False: the file was shorter than its size at some moment since create() or move().
  bool intact() const;
  // Whether a range that ends at byte `end` reaches into the last page.
  bool reaches_last_page(uint64_t end) const {
    return end > last_page_.load(std::memory_order_relaxed);
  }
  // The file grew to `size` bytes. False: it can't be mapped, or is shorter; the sentinel is
  // unchanged.
  bool move(int fd, uint64_t size);

 private:
  TruncationSentinel(uint8_t* page, uint64_t last_page) : page_(page), last_page_(last_page) {}

  uint8_t* const page_;
  std::atomic<uint64_t> last_page_;  // offset in the file, bytes
};

}  // namespace sluice::backend
