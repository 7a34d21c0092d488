#include "unit/ranges/range_table.h"

namespace sluice::lun {

bool RangeTable::acquire(unsigned reactor, RangeHold& hold, Reactors* reactors) {
  return lane(reactor).acquire(hold, reactors);
}

void RangeTable::release(unsigned reactor, RangeHold& hold, Reactors* reactors) {
  lane(reactor).release(hold, reactors);
}

void RangeTable::cancel(unsigned reactor, RangeHold& hold, Reactors* reactors) {
  lane(reactor).cancel(hold, reactors);
}

size_t RangeTable::holding(unsigned reactor) const {
  const RangeLane* lane = existing(reactor);
  return lane ? lane->holding() : 0;
}

size_t RangeTable::waiting(unsigned reactor) const {
  const RangeLane* lane = existing(reactor);
  return lane ? lane->waiting() : 0;
}

}  // namespace sluice::lun
