#include "control/diff.h"

#include <algorithm>
#include <set>

namespace sluice::control {
namespace {

// Portals come last, because they make the ports of targets reachable.
constexpr wire::ObjectKind kOrder[] = {
    wire::OBJECT_KIND_SETTINGS, wire::OBJECT_KIND_PEER, wire::OBJECT_KIND_POOL,
    wire::OBJECT_KIND_VOLUME,   wire::OBJECT_KIND_HOST, wire::OBJECT_KIND_TARGET,
    wire::OBJECT_KIND_LISTENER,
};

// Most objects of an update are unchanged, and both states then share the object. The address
// comparison is fast.
bool same(const ObjectPtr& a, const ObjectPtr& b) {
  if (a == b) return true;
  if (!a->digest().empty() || !b->digest().empty()) return a->digest() == b->digest();
  return a->SerializeAsString() == b->SerializeAsString();
}

// Whether the other state has an object with the same key, and advances `there` to it. Shared
// objects are found by address.
bool meets(const ObjectPtr& object, Objects::Iterator& there, Objects::Iterator end) {
  if (there != end && *there == object) return true;
  while (there != end && before(**there, *object)) ++there;
  return there != end && !before(*object, **there);
}

std::vector<ObjectPtr> only_in(const Objects& one, const Objects& other) {
  std::vector<ObjectPtr> found;
  auto there = other.begin();
  for (const ObjectPtr& object : one) {
    if (meets(object, there, other.end())) {
      ++there;
    } else {
      found.push_back(object);
    }
  }
  return found;
}

std::set<const wire::DesiredObject*> find_all(const Objects& objects, const std::set<Key>& keys) {
  std::set<const wire::DesiredObject*> found;
  for (const Key& key : keys) {
    if (const ObjectPtr* object = objects.find(key)) found.insert(object->get());
  }
  return found;
}

// Whether applying this object depends on one of `changed`.
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

std::vector<Action> diff(const Objects& now, const Objects& next, const std::set<Key>& retried) {
  std::vector<Action> actions;
  std::set<Key> changed;
  const std::vector<ObjectPtr> removed = only_in(now, next);
  for (const ObjectPtr& object : removed) changed.insert(key_of(*object));
  const auto remove = [&](wire::ObjectKind kind) {
    for (const ObjectPtr& object : removed) {
      if (kind_of(*object) != kind) continue;
      actions.push_back({Action::What::kRemove, key_of(*object), object});
    }
  };
  const std::set<const wire::DesiredObject*> again = find_all(next, retried);
  for (const wire::ObjectKind kind : kOrder) {
    if (kind == wire::OBJECT_KIND_TARGET) remove(kind);
    auto there = now.first_of(kind);
    for (auto at = next.first_of(kind); at != next.end() && kind_of(**at) == kind; ++at) {
      const bool known = meets(*at, there, now.end());
      if (!known || !same(*there, *at)) {
        Key key = key_of(**at);
        // A target depends only on the existence of a volume's unit. Changes within the volume do
        // not count, because a failover changes hundreds of volumes of one target.
        if (kind != wire::OBJECT_KIND_VOLUME || !known) changed.insert(key);
        actions.push_back({Action::What::kPut, std::move(key), *at});
      } else if (again.contains(at->get()) || refers_to(**at, changed)) {
        actions.push_back({Action::What::kAgain, key_of(**at), *at});
      }
      if (known) ++there;
    }
  }
  for (auto kind = std::rbegin(kOrder); kind != std::rend(kOrder); ++kind) {
    if (*kind != wire::OBJECT_KIND_TARGET) remove(*kind);
  }
  return actions;
}

bool may_close_access(const Objects& now, const Objects& next) {
  for (const wire::ObjectKind kind :
       {wire::OBJECT_KIND_HOST, wire::OBJECT_KIND_TARGET, wire::OBJECT_KIND_PEER}) {
    auto there = next.first_of(kind);
    for (auto at = now.first_of(kind); at != now.end() && kind_of(**at) == kind; ++at) {
      if (!meets(*at, there, next.end())) return true;
      if (kind != wire::OBJECT_KIND_PEER && !same(*at, *there)) return true;
    }
  }
  return false;
}

}  // namespace sluice::control
