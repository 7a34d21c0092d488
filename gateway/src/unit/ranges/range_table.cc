#include "unit/ranges/range_table.h"

namespace sluice::lun {

bool RangeTable::acquire(unsigned reactor, RangeHold& hold, Reactors* reactors) {
  return shard(reactor).acquire(hold, reactors);
}

void RangeTable::release(unsigned reactor, RangeHold& hold, Reactors* reactors) {
  shard(reactor).release(hold, reactors);
}

void RangeTable::cancel(unsigned reactor, RangeHold& hold, Reactors* reactors) {
  shard(reactor).cancel(hold, reactors);
}

size_t RangeTable::holding(unsigned reactor) const {
  const RangeShard* shard = existing(reactor);
  return shard ? shard->holding() : 0;
}

size_t RangeTable::waiting(unsigned reactor) const {
  const RangeShard* shard = existing(reactor);
  return shard ? shard->waiting() : 0;
}

}  // namespace sluice::lun
