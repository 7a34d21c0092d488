// Whether the medium behind a descriptor is, and always was, as long as its LUN
// (gateway/decisions/local-media.md). From the moment at which it is not, every request except
// kCheckFence fails with -EIO until the data is opened again: data behind the new end is lost even
// if the length is restored later.
//
// Threads: any; grow() and stop() on one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "backend/truncation_sentinel.h"

namespace sluice::backend {

class MediumWatch {
 public:
  struct Medium {
    int fd = -1;  // valid until stop()
    std::string path;
    uint64_t base = 0;  // bytes of the medium in front of the LUN
    bool is_device = false;
    bool read_only = false;
    // For a file. nullptr if it can't be mapped: then every request queries the file's size.
    std::unique_ptr<TruncationSentinel> sentinel;
  };
  // `size`: that of the LUN, in bytes.
  MediumWatch(Medium medium, uint64_t size);

  uint64_t size_bytes() const { return size_.load(std::memory_order_acquire); }
  // The LUN has a new size, which the medium has already. False: the file's last page can't be
  // mapped, and the size is unchanged.
  bool grow(uint64_t size);
  // The descriptor may refer to another file from now on.
  void stop() { stopped_.store(true); }

  // What was found before, without a system call.
  bool is_known_cut_short() const { return cut_short_.load(std::memory_order_relaxed); }
  // Queries the kernel for the size of the medium.
  bool is_cut_short();
  // Whether a write that ends at byte `end` could extend a truncated file, which would replace lost
  // data by zeros. Reads the sentinel; a system call only without one, and at the last page.
  bool may_extend(uint64_t end);
  // Whether a completed request with this result has to fail, because the medium was truncated
  // before or meanwhile.
  bool fails(int64_t result);

 private:
  uint64_t medium_bytes() const;
  void latch(uint64_t bytes);
  bool has_lost_its_end();

  const Medium medium_;
  std::atomic<uint64_t> size_;
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> cut_short_ = false;
};

}  // namespace sluice::backend
