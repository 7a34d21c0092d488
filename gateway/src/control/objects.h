// The objects of a desired state by their keys. An update changes a few of thousands: a copy shares
// all objects with what it was copied from, and whoever compares two sees by address what is the
// same.
//
// Values only, one thread at a time.
#pragma once

#include <compare>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "control/wire.h"

namespace sluice::control {

// In the order that the digest goes over them: by kind, then by id, bytewise.
struct Key {
  wire::ObjectKind kind = wire::OBJECT_KIND_UNSPECIFIED;
  std::string id;
  auto operator<=>(const Key&) const = default;
};

// UNSPECIFIED: of no kind that this release knows.
wire::ObjectKind kind_of(const wire::DesiredObject& object);
Key key_of(const wire::DesiredObject& object);
wire::ObjectKey to_wire(const Key& key);
std::string text_of(const Key& key);  // "volume 5f0c...", for messages

using ObjectPtr = std::shared_ptr<const wire::DesiredObject>;

// Whether one comes before the other, by their keys.
bool before(const wire::DesiredObject& a, const wire::DesiredObject& b);

class Objects {
 public:
  using Iterator = std::vector<ObjectPtr>::const_iterator;

  // In order of their keys; none is null.
  Iterator begin() const { return all_.begin(); }
  Iterator end() const { return all_.end(); }
  size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty(); }
  void clear() { all_.clear(); }
  // nullptr: there is none.
  const ObjectPtr* find(const Key& key) const;
  // All of a kind lie between its first and that of the next kind.
  Iterator first_of(wire::ObjectKind kind) const;

  // Removes, then puts in the place of those with the same key or as new ones; of several with one
  // key the last. A few cost little more than nothing, however many there are.
  void change(const std::vector<Key>& removed, std::vector<ObjectPtr> put);

 private:
  std::vector<ObjectPtr>::iterator place(wire::ObjectKind kind, std::string_view id);

  std::vector<ObjectPtr> all_;
};

}  // namespace sluice::control
