// The objects of a desired state, ordered by key. An update changes a few of thousands of objects,
// so copies share unchanged objects. Comparisons detect shared objects by address.
//
// One thread at a time.
#pragma once

#include <compare>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "control/wire.h"

namespace sluice::control {

// The digest covers objects in this order: by kind, then by id, bytewise.
struct Key {
  wire::ObjectKind kind = wire::OBJECT_KIND_UNSPECIFIED;
  std::string id;
  auto operator<=>(const Key&) const = default;
};

// UNSPECIFIED: a kind that this release does not know.
wire::ObjectKind kind_of(const wire::DesiredObject& object);
Key key_of(const wire::DesiredObject& object);
wire::ObjectKey to_wire(const Key& key);
std::string text_of(const Key& key);  // "volume 5f0c...", for messages

using ObjectPtr = std::shared_ptr<const wire::DesiredObject>;

// Whether the key of `a` is less than the key of `b`.
bool before(const wire::DesiredObject& a, const wire::DesiredObject& b);

class Objects {
 public:
  using Iterator = std::vector<ObjectPtr>::const_iterator;

  // In key order; no pointer is null.
  Iterator begin() const { return all_.begin(); }
  Iterator end() const { return all_.end(); }
  size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty(); }
  void clear() { all_.clear(); }
  // nullptr: not found.
  const ObjectPtr* find(const Key& key) const;
  // The first object of `kind`; the objects of a kind end where the next kind begins.
  Iterator first_of(wire::ObjectKind kind) const;

  size_t count(wire::ObjectKind kind) const;

  // Removes `removed`, then inserts or replaces `put`; of several objects with one key the last
  // counts. The cost depends on the number of changes, hardly on the number of objects.
  void change(const std::vector<Key>& removed, std::vector<ObjectPtr> put);

 private:
  std::vector<ObjectPtr>::iterator position_of(wire::ObjectKind kind, std::string_view id);

  std::vector<ObjectPtr> all_;
};

}  // namespace sluice::control
