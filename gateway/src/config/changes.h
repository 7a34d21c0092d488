// The difference between two complete configurations, for a reload. It has no side effects. Volumes
// are matched by UUID, so a volume that moves to another number or target keeps its state.
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

struct LunRef {
  std::string iqn;
  uint64_t lun = 0;
  Uuid uuid{};
  bool operator==(const LunRef&) const = default;
  std::string text() const;  // "LUN 3 of iqn..."
};

struct Changes {
  Config in_force;  // the configuration in effect after the change
  std::vector<std::string> targets_added;
  std::vector<std::string> targets_removed;
  std::vector<std::string> hosts_changed;  // targets whose access list changed
  std::vector<LunRef> luns_added;          // to the map of a target
  std::vector<LunRef> luns_removed;
  std::vector<LunRef> luns_resized;    // the new size is in in_force
  std::vector<LunRef> caches_changed;  // write cache; the new value is in in_force
  std::set<Uuid> opens;                // volumes that need a new backend
  bool discovery_changed = false;
  bool log_changed = false;
  std::vector<std::string> need_restart;  // keys, such as "listen" or "LUN 3 of iqn...: block-size"

  bool none() const;  // ignores need_restart
};

// Error: the change is impossible (a volume would shrink, or a path would get another identity);
// nothing may be changed then.
Result<Changes> diff(const Config& now, const Config& next);

// The change from an empty configuration to `config`.
Result<Changes> from_scratch(const Config& config);

}  // namespace sluice::config
