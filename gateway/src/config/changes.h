// The difference between two complete configurations, as far as it is not a matter of exports: what
// a reload does to volumes, and what only a restart can change. desired/exporter.h finds out which
// targets and LUNs differ. No side effects. Volumes are matched by UUID, so a volume that moves to
// another number or target keeps its state.
//
// Values that can't change while sessions live (portals, reactors, a LUN's block size, ...) are
// listed in `need_restart` and keep their present value in `in_force`; all other changes are
// applied.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace sluice::config {

struct Changes {
  Config in_force;         // the configuration in effect after the change
  std::set<Uuid> opens;    // volumes that need a new backend
  std::set<Uuid> resizes;  // the new size is in in_force
  std::set<Uuid> caches;   // the write cache differs; the new value is in in_force
  bool log_changed = false;
  std::vector<std::string> need_restart;  // keys, such as "listen" or "LUN 3 of iqn...: block-size"
};

// Error: the change is impossible (a volume would shrink, or a path would get another identity);
// nothing may be changed then.
Result<Changes> diff(const Config& now, const Config& next);

// The change from an empty configuration to `config`.
Result<Changes> from_scratch(const Config& config);

}  // namespace sluice::config
