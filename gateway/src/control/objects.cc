#include "control/objects.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sluice::control {
namespace {

bool less(const wire::DesiredObject& object, wire::ObjectKind kind, std::string_view id) {
  const wire::ObjectKind own = kind_of(object);
  return own != kind ? own < kind : object.id() < id;
}

bool is(const wire::DesiredObject& object, wire::ObjectKind kind, std::string_view id) {
  return kind_of(object) == kind && object.id() == id;
}

}  // namespace

wire::ObjectKind kind_of(const wire::DesiredObject& object) {
  using Object = wire::DesiredObject;
  switch (object.object_case()) {
    case Object::kSettings:
      return wire::OBJECT_KIND_SETTINGS;
    case Object::kListener:
      return wire::OBJECT_KIND_LISTENER;
    case Object::kPeer:
      return wire::OBJECT_KIND_PEER;
    case Object::kPool:
      return wire::OBJECT_KIND_POOL;
    case Object::kVolume:
      return wire::OBJECT_KIND_VOLUME;
    case Object::kHost:
      return wire::OBJECT_KIND_HOST;
    case Object::kTarget:
      return wire::OBJECT_KIND_TARGET;
    case Object::OBJECT_NOT_SET:
      break;
  }
  return wire::OBJECT_KIND_UNSPECIFIED;
}

Key key_of(const wire::DesiredObject& object) { return {kind_of(object), object.id()}; }

wire::ObjectKey to_wire(const Key& key) {
  wire::ObjectKey out;
  out.set_kind(key.kind);
  out.set_id(key.id);
  return out;
}

std::string text_of(const Key& key) {
  static constexpr const char* kNames[] = {"object", "settings", "listener", "peer",
                                           "pool",   "volume",   "host",     "target"};
  const auto kind = static_cast<size_t>(key.kind);
  const std::string name = kind < std::size(kNames) ? kNames[kind] : kNames[0];
  return key.id.empty() ? name : name + ' ' + key.id;
}

bool before(const wire::DesiredObject& a, const wire::DesiredObject& b) {
  return less(a, kind_of(b), b.id());
}

std::vector<ObjectPtr>::iterator Objects::position_of(wire::ObjectKind kind, std::string_view id) {
  return std::partition_point(all_.begin(), all_.end(),
                              [&](const ObjectPtr& o) { return less(*o, kind, id); });
}

const ObjectPtr* Objects::find(const Key& key) const {
  const auto at = std::partition_point(
      all_.begin(), all_.end(), [&](const ObjectPtr& o) { return less(*o, key.kind, key.id); });
  return at == all_.end() || !is(**at, key.kind, key.id) ? nullptr : &*at;
}

Objects::Iterator Objects::first_of(wire::ObjectKind kind) const {
  return std::partition_point(all_.begin(), all_.end(),
                              [&](const ObjectPtr& o) { return kind_of(*o) < kind; });
}

size_t Objects::count(wire::ObjectKind kind) const {
  const auto first = first_of(kind);
  const auto last = std::find_if_not(
      first, end(), [kind](const ObjectPtr& object) { return kind_of(*object) == kind; });
  return static_cast<size_t>(std::distance(first, last));
}

void Objects::change(const std::vector<Key>& removed, std::vector<ObjectPtr> put) {
  std::vector<ObjectPtr> objects;
  for (const Key& key : removed) {
    if (const ObjectPtr* found = find(key)) objects.push_back(*found);
  }
  if (!objects.empty()) {
    std::sort(objects.begin(), objects.end());
    std::erase_if(all_, [&](const ObjectPtr& o) {
      return std::binary_search(objects.begin(), objects.end(), o);
    });
  }
  std::vector<std::pair<ObjectPtr, size_t>> fresh;  // with their index in `put`
  for (size_t i = 0; i < put.size(); ++i) {
    const wire::DesiredObject& object = *put[i];
    const auto at = position_of(kind_of(object), object.id());
    if (at != all_.end() && is(**at, kind_of(object), object.id())) {
      *at = std::move(put[i]);
    } else {
      fresh.emplace_back(std::move(put[i]), i);
    }
  }
  if (fresh.empty()) return;
  std::sort(fresh.begin(), fresh.end(), [](const auto& a, const auto& b) {
    if (before(*a.first, *b.first)) return true;
    return !before(*b.first, *a.first) && a.second < b.second;
  });
  std::vector<ObjectPtr> merged;
  merged.reserve(all_.size() + fresh.size());
  auto known = all_.begin();
  for (size_t i = 0; i < fresh.size(); ++i) {
    const ObjectPtr& object = fresh[i].first;
    // a later one has the same key
    if (i + 1 < fresh.size() && !before(*object, *fresh[i + 1].first)) continue;
    const auto next = std::partition_point(known, all_.end(),
                                           [&](const ObjectPtr& o) { return before(*o, *object); });
    merged.insert(merged.end(), std::make_move_iterator(known), std::make_move_iterator(next));
    merged.push_back(object);
    known = next;
  }
  merged.insert(merged.end(), std::make_move_iterator(known), std::make_move_iterator(all_.end()));
  all_ = std::move(merged);
}

}  // namespace sluice::control
