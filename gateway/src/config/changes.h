// What a reload changes: a pure comparison of two complete configurations. Volumes are matched by
// UUID, so one that moves to another number or target keeps its state.
//
// What can't change while sessions live (portals, reactors, a LUN's block size, ...) is listed in
// `need_restart` and keeps its present value in `in_force`; everything else goes on.
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
  Config in_force;  // what holds once this is applied
  std::vector<std::string> targets_added;
  std::vector<std::string> targets_removed;
  std::vector<std::string> hosts_changed;  // targets whose access list changed
  std::vector<LunRef> luns_added;          // to a target's map
  std::vector<LunRef> luns_removed;
  std::vector<LunRef> luns_resized;    // size in in_force
  std::vector<LunRef> caches_changed;  // write cache, as in in_force
  std::set<Uuid> opens;                // volumes that get a new backend
  bool discovery_changed = false;
  bool log_changed = false;
  std::vector<std::string> need_restart;  // keys, as "listen" or "LUN 3 of iqn...: block-size"

  bool none() const;  // but for need_restart
};

// Error: the next configuration can't follow the present one (a volume would shrink, a path would
// be taken over under another identity); nothing may be changed then.
Result<Changes> diff(const Config& now, const Config& next);

// Everything `config` asks for, from nothing.
Result<Changes> from_scratch(const Config& config);

}  // namespace sluice::config
