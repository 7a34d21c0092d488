// Finds out which objects of the desired state changed, and in which order they are applied. It
// compares digests, not contents: desired/exporter.h finds out what changes of a target. It has no
// side effects.
#pragma once

#include <set>
#include <vector>

#include "control/desired.h"

namespace sluice::control {

struct Action {
  enum class What : uint8_t {
    kPut,  // new, or its content changed
    // unchanged, but to be retried, or an object it refers to changed; for a target's volumes: was
    // added or removed
    kAgain,
    kRemove,  // `object` is the one to remove
  };
  What what = What::kPut;
  Key key;
  ObjectPtr object;
};

// Returns the actions in the order in which they must run: an object is put after the objects it
// refers to, and removed before them. The actions on targets are adjacent, so that one update of
// desired/exporter.h takes access from hosts before it shows a LUN to others. `retried`: objects to
// apply even if nothing changed.
std::vector<Action> diff(const Objects& now, const Objects& next,
                         const std::set<Key>& retried = {});

// Whether `next` may deny access that `now` permits: a host, target or peer is removed, or a host
// or target changed. It is also true for some changes that only open access.
bool may_close_access(const Objects& now, const Objects& next);

}  // namespace sluice::control
