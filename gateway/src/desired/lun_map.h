// The difference between two LUN maps of a target. Pure functions.
#pragma once

#include <functional>
#include <vector>

#include "nexus/target.h"

namespace sluice::desired {

using LunEntries = std::vector<lun::Target::LunEntry>;  // sorted by number

// A number whose unit differs is removed and added. Write protection does not count.
struct LunMapDifference {
  LunEntries removed;
  LunEntries added;
};
LunMapDifference difference(const LunEntries& now, const LunEntries& next);

// `now` without what `next` takes from the hosts of the target, as far as it concerns units for
// which `gained` is true: LUNs that `next` does not have are absent, and LUNs that it protects are
// protected.
LunEntries without_lost(const LunEntries& now, const LunEntries& next,
                        const std::function<bool(const lun::Unit&)>& gained);

}  // namespace sluice::desired
