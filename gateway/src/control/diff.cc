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

// An update leaves most objects of thousands as they are: the very ones, not others that read
// alike.
bool same(const ObjectPtr& a, const ObjectPtr& b) {
  if (a == b) return true;
  if (!a->digest().empty() || !b->digest().empty()) return a->digest() == b->digest();
  return a->SerializeAsString() == b->SerializeAsString();
}

std::vector<Objects::const_iterator> only_in(const Objects& one, const Objects& other) {
  std::vector<Objects::const_iterator> found;
  auto there = other.begin();
  for (auto at = one.begin(); at != one.end(); ++at) {
    while (there != other.end() && there->first < at->first) ++there;
    if (there == other.end() || there->first != at->first) found.push_back(at);
  }
  return found;
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
  std::vector<Objects::const_iterator> gone = only_in(now, next);
  for (const auto& at : gone) changed.insert(at->first);
  for (const wire::ObjectKind kind : kOrder) {
    auto before = now.lower_bound({kind, {}});
    for (auto at = next.lower_bound({kind, {}}); at != next.end() && at->first.kind == kind; ++at) {
      while (before != now.end() && before->first < at->first) ++before;
      const bool known = before != now.end() && before->first == at->first;
      if (!known || !same(before->second, at->second)) {
        // A target shows a volume's unit, which lives as long as the volume: what becomes of that
        // is the volume's own affair, and a failover changes hundreds of one target.
        if (kind != wire::OBJECT_KIND_VOLUME || !known) changed.insert(at->first);
        actions.push_back({Action::What::kPut, at->first, at->second});
      } else if (refers_to(*at->second, changed)) {
        actions.push_back({Action::What::kAgain, at->first, at->second});
      }
    }
  }
  for (auto kind = std::rbegin(kOrder); kind != std::rend(kOrder); ++kind) {
    for (const auto& at : gone) {
      if (at->first.kind != *kind) continue;
      actions.push_back({Action::What::kRemove, at->first, at->second});
    }
  }
  return actions;
}

}  // namespace sluice::control
