#include "control/diff.h"

#include <algorithm>
#include <set>

namespace sluice::control {
namespace {

// Ports of targets are shown by portals, so portals come last.
constexpr wire::ObjectKind kOrder[] = {
    wire::OBJECT_KIND_SETTINGS, wire::OBJECT_KIND_PEER, wire::OBJECT_KIND_POOL,
    wire::OBJECT_KIND_VOLUME,   wire::OBJECT_KIND_HOST, wire::OBJECT_KIND_TARGET,
    wire::OBJECT_KIND_LISTENER,
};

bool same(const wire::DesiredObject& a, const wire::DesiredObject& b) {
  if (!a.digest().empty() || !b.digest().empty()) return a.digest() == b.digest();
  return a.SerializeAsString() == b.SerializeAsString();
}

// Whether what this object is made into depends on one of `changed`.
bool refers_to(const wire::DesiredObject& object, const std::set<Key>& changed) {
  if (changed.empty()) return false;
  if (object.has_volume()) {
    return changed.contains({wire::OBJECT_KIND_SETTINGS, {}}) ||
           changed.contains({wire::OBJECT_KIND_POOL, object.volume().pool_uid()});
  }
  if (!object.has_target()) return false;
  if (changed.contains({wire::OBJECT_KIND_SETTINGS, {}})) return true;
  const auto& luns = object.target().luns();
  const auto& access = object.target().access();
  return std::any_of(luns.begin(), luns.end(),
                     [&](const wire::DesiredLun& lun) {
                       return changed.contains({wire::OBJECT_KIND_VOLUME, lun.volume_uid()});
                     }) ||
         std::any_of(access.begin(), access.end(), [&](const wire::DesiredAccess& who) {
           return changed.contains({wire::OBJECT_KIND_HOST, who.host_uid()});
         });
}

}  // namespace

std::vector<Action> diff(const Objects& now, const Objects& next) {
  std::vector<Action> actions;
  std::set<Key> changed;
  for (const auto& [key, object] : now) {
    if (!next.contains(key)) changed.insert(key);
  }
  for (const wire::ObjectKind kind : kOrder) {
    for (auto at = next.lower_bound({kind, {}}); at != next.end() && at->first.kind == kind; ++at) {
      const auto before = now.find(at->first);
      if (before == now.end() || !same(*before->second, *at->second)) {
        // A target shows a volume's unit, which lives as long as the volume: what becomes of that
        // is the volume's own affair, and a failover changes hundreds of one target.
        if (kind != wire::OBJECT_KIND_VOLUME || before == now.end()) changed.insert(at->first);
        actions.push_back({Action::What::kPut, at->first, at->second});
      } else if (refers_to(*at->second, changed)) {
        actions.push_back({Action::What::kAgain, at->first, at->second});
      }
    }
  }
  for (auto kind = std::rbegin(kOrder); kind != std::rend(kOrder); ++kind) {
    for (auto at = now.lower_bound({*kind, {}}); at != now.end() && at->first.kind == *kind; ++at) {
      if (!next.contains(at->first)) {
        actions.push_back({Action::What::kRemove, at->first, at->second});
      }
    }
  }
  return actions;
}

}  // namespace sluice::control
