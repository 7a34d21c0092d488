#include "unit/rod_source.h"

#include <algorithm>

#include "scsi/third_party_copy_limits.h"

namespace sluice::lun {

RodSource::RodSource(const std::shared_ptr<Unit>& unit, std::vector<scsi::BlockExtent> ranges,
                     Nanos inactivity, Nanos born)
    : unit_(unit),
      ranges_(std::move(ranges)),
      inactivity_(inactivity),
      end_of_life_(born + Nanos{scsi::ThirdPartyCopyLimits{}.max_token_lifetime_seconds} * kSecond),
      deadline_(born + inactivity) {
  for (const scsi::BlockExtent& r : ranges_) blocks_ += r.blocks;
}

bool RodSource::overlaps(uint64_t first, uint64_t last) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const scsi::BlockExtent& r) {
    return r.blocks > 0 && first <= r.lba + r.blocks - 1 && r.lba <= last;
  });
}

void RodSource::touch(Nanos now) {
  deadline_.store(std::min(now + inactivity_, end_of_life_), std::memory_order_relaxed);
}

}  // namespace sluice::lun
