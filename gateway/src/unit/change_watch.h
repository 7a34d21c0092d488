// Revokes ROD tokens when blocks of a unit change. A token represents data at the time of its
// creation (SPC-5 §5.18.6.3). Without snapshots it becomes invalid with the first write.
//
// Threads: any reactor calls changing(), with the blocks held exclusively. A token is added before
// its blocks are first held shared. So each writer either finished before that, or sees armed_ set.
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
  // Blocks first..last are about to change. Costs one relaxed load if there are no tokens.
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
