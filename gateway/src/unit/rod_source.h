// The blocks that a ROD token represents (SPC-5 §5.18.6).
//
// Threads: any reactor.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "scsi/unmap_list.h"

namespace sluice::lun {

class Unit;

// A copy that uses it may keep it longer than its token lives.
class RodSource {
 public:
  RodSource(const std::shared_ptr<Unit>& unit, std::vector<scsi::BlockExtent> ranges,
            Nanos inactivity, Nanos born);

  std::shared_ptr<Unit> unit() const { return unit_.lock(); }  // null: the unit was removed
  const std::vector<scsi::BlockExtent>& ranges() const { return ranges_; }
  uint64_t blocks() const { return blocks_; }
  bool overlaps(uint64_t first, uint64_t last) const;  // blocks, inclusive

  bool revoked() const { return revoked_.load(std::memory_order_acquire); }
  void revoke() { revoked_.store(true, std::memory_order_release); }
  bool expired(Nanos now) const { return now >= deadline_.load(std::memory_order_relaxed); }
  // A use restarts the inactivity time, within the lifetime.
  void touch(Nanos now);

 private:
  const std::weak_ptr<Unit> unit_;
  const std::vector<scsi::BlockExtent> ranges_;
  uint64_t blocks_ = 0;
  const Nanos inactivity_;
  const Nanos end_of_life_;
  std::atomic<Nanos> deadline_;
  std::atomic<bool> revoked_{false};
};

}  // namespace sluice::lun
