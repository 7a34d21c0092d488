// Which blocks of a unit are in use by submitted commands (DESIGN R5). Overlapping holds exclude
// each other unless both are shared; first come, first served among those that overlap.
//
// Threads: one lane per reactor; acquire(), release() and cancel() of a hold run on one reactor,
// the lane's only writer. With one reactor nothing is atomic. With several, a lane also publishes
// its holds, and an acquire looks at the other lanes' (range_lane.h argues why two
// overlapping holds are never both granted, and why none waits for ever).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/reactors.h"
#include "lun/command.h"

namespace sluice::lun {

class RangeLane;

class RangeTable : public std::enable_shared_from_this<RangeTable> {
 public:
  // coarse_shift: log2 of the number of blocks most commands keep to the multiples of.
  explicit RangeTable(unsigned reactors, unsigned coarse_shift = 3);
  ~RangeTable();

  // `hold` has first, last, exclusive, on_grant and context set. true: granted now. false: it
  // waits, and on_grant follows on this reactor, from inside a release() or from a posted task.
  // `reactors` may be null when the table has one lane only.
  bool acquire(unsigned reactor, RangeHold& hold, Reactors* reactors);
  // Lets go of a granted hold. Others' on_grant may run inside.
  void release(unsigned reactor, RangeHold& hold, Reactors* reactors);
  // Withdraws a hold that waits; on_grant is not called any more. A granted one is released.
  void cancel(unsigned reactor, RangeHold& hold, Reactors* reactors);

  unsigned lanes() const { return static_cast<unsigned>(lanes_.size()); }
  // Holds granted or waiting in a lane; that reactor's thread only.
  size_t holding(unsigned reactor) const;
  size_t waiting(unsigned reactor) const;

 private:
  friend class RangeLane;
  RangeLane& lane(unsigned reactor);

  const unsigned coarse_shift_;
  std::vector<std::atomic<RangeLane*>> lanes_;  // made at a reactor's first acquire
  std::atomic<uint64_t> next_ticket_{1};
};

}  // namespace sluice::lun
