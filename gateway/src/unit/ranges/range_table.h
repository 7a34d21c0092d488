// The blocks of a unit that submitted commands use (DESIGN R5). Overlapping holds exclude each
// other unless both are shared. Overlapping holds are granted in the order of their arrival.
//
// Threads: one shard per reactor. acquire(), release() and cancel() of a hold run on one reactor,
// the only writer of its shard. With one reactor nothing is atomic. With several, a shard also
// publishes its holds, and an acquire checks the other shards. range_shard.h proves that two
// overlapping holds are never both granted, and that none waits without end.
#pragma once

#include <cstddef>

#include "base/reactors.h"
#include "unit/ranges/range_hold.h"
#include "unit/ranges/range_shard.h"

namespace sluice::lun {

class RangeTable : public RangeShards {
 public:
  explicit RangeTable(unsigned reactors, unsigned coarse_shift = 3)
      : RangeShards(reactors, coarse_shift) {}

  // `hold` has first, last, exclusive, on_grant and context set. True: granted. False: it waits,
  // and on_grant is called on this reactor, within a release() or by a posted task. `reactors` may
  // be null if the table has only one shard.
  bool acquire(unsigned reactor, RangeHold& hold, Reactors* reactors);
  // Releases a granted hold. May call on_grant of other holds.
  void release(unsigned reactor, RangeHold& hold, Reactors* reactors);
  // Withdraws a waiting hold; its on_grant is not called any more. A granted hold is released.
  void cancel(unsigned reactor, RangeHold& hold, Reactors* reactors);

  unsigned shards() const { return count(); }
  // Number of granted or waiting holds in a shard; only that reactor's thread may call them.
  size_t holding(unsigned reactor) const;
  size_t waiting(unsigned reactor) const;
};

}  // namespace sluice::lun
