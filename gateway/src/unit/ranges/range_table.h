// Which blocks of a unit are in use by submitted commands (DESIGN R5). Overlapping holds exclude
// each other unless both are shared; first come, first served among those that overlap.
//
// Threads: one lane per reactor; acquire(), release() and cancel() of a hold run on one reactor,
// the lane's only writer. With one reactor nothing is atomic. With several, a lane also publishes
// its holds, and an acquire looks at the other lanes' (range_lane.h argues why two
// overlapping holds are never both granted, and why none waits for ever).
#pragma once

#include <cstddef>

#include "base/reactors.h"
#include "unit/ranges/range_hold.h"
#include "unit/ranges/range_lane.h"

namespace sluice::lun {

class RangeTable : public RangeLanes {
 public:
  explicit RangeTable(unsigned reactors, unsigned coarse_shift = 3)
      : RangeLanes(reactors, coarse_shift) {}

  // `hold` has first, last, exclusive, on_grant and context set. true: granted now. false: it
  // waits, and on_grant follows on this reactor, from inside a release() or from a posted task.
  // `reactors` may be null when the table has one lane only.
  bool acquire(unsigned reactor, RangeHold& hold, Reactors* reactors);
  // Releases a granted hold. The on_grant of others may run inside.
  void release(unsigned reactor, RangeHold& hold, Reactors* reactors);
  // Withdraws a hold that waits; on_grant is not called any more. A granted one is released.
  void cancel(unsigned reactor, RangeHold& hold, Reactors* reactors);

  unsigned lanes() const { return count(); }
  // Holds granted or waiting in a lane; that reactor's thread only.
  size_t holding(unsigned reactor) const;
  size_t waiting(unsigned reactor) const;
};

}  // namespace sluice::lun
