#include "lun/ranges/range_table.h"

#include "lun/ranges/range_lane.h"

namespace sluice::lun {

RangeTable::RangeTable(unsigned reactors, unsigned coarse_shift)
    : coarse_shift_(coarse_shift), lanes_(reactors ? reactors : 1) {}

RangeTable::~RangeTable() {
  for (auto& lane : lanes_) delete lane.load(std::memory_order_relaxed);
}

RangeLane& RangeTable::lane(unsigned reactor) {
  RangeLane* lane = lanes_[reactor].load(std::memory_order_relaxed);
  if (!lane) [[unlikely]] {
    lane = new RangeLane(*this, reactor);
    lanes_[reactor].store(lane, std::memory_order_release);
  }
  return *lane;
}

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
  const RangeLane* lane = lanes_[reactor].load(std::memory_order_relaxed);
  return lane ? lane->holding() : 0;
}

size_t RangeTable::waiting(unsigned reactor) const {
  const RangeLane* lane = lanes_[reactor].load(std::memory_order_relaxed);
  return lane ? lane->waiting() : 0;
}

}  // namespace sluice::lun
