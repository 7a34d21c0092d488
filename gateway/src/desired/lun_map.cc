#include "desired/lun_map.h"

#include <algorithm>

namespace sluice::desired {
namespace {

using Entry = lun::Target::LunEntry;

// The entry with the number and the unit of `entry`; null: none.
const Entry* same_lun(const LunEntries& luns, const Entry& entry) {
  const auto at = std::ranges::lower_bound(luns, entry.lun, {}, &Entry::lun);
  return at != luns.end() && at->lun == entry.lun && at->unit == entry.unit ? &*at : nullptr;
}

LunEntries only_in(const LunEntries& one, const LunEntries& other) {
  LunEntries found;
  for (const Entry& entry : one) {
    if (same_lun(other, entry) == nullptr) found.push_back(entry);
  }
  return found;
}

}  // namespace

LunMapDifference difference(const LunEntries& now, const LunEntries& next) {
  return {.removed = only_in(now, next), .added = only_in(next, now)};
}

LunEntries without_lost(const LunEntries& now, const LunEntries& next,
                        const std::function<bool(const lun::Unit&)>& gained) {
  LunEntries left;
  for (Entry entry : now) {
    if (gained(*entry.unit)) {
      const Entry* stays = same_lun(next, entry);
      if (stays == nullptr) continue;
      entry.read_only = entry.read_only || stays->read_only;
    }
    left.push_back(std::move(entry));
  }
  return left;
}

}  // namespace sluice::desired
