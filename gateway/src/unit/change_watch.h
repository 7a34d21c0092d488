// Who must hear that blocks of a unit change: ROD tokens stand for data as it was when they were
// made (SPC-5 §5.18.6.3), and without snapshots that promise ends with the first write.
//
// Threads: changing() from any reactor, with the blocks held exclusively. A token is added before
// its blocks are held shared for the first time, so every writer either was done by then or sees
// the watch armed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"

namespace sluice::lun {

class RodSource;

class ChangeWatch {
 public:
  void add(const std::shared_ptr<RodSource>& source);
  // Blocks first..last are about to change. One relaxed load where no token lives.
  void changing(uint64_t first, uint64_t last, Nanos now) {
    if (armed_.load(std::memory_order_relaxed)) [[unlikely]] {
      revoke(first, last, now);
    }
  }
  bool armed() const { return armed_.load(std::memory_order_relaxed); }

 private:
  void revoke(uint64_t first, uint64_t last, Nanos now);

  std::atomic<bool> armed_{false};
  std::mutex mutex_;
  std::vector<std::weak_ptr<RodSource>> sources_;
};

}  // namespace sluice::lun
