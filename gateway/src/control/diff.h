// Computes the actions that turn one desired state into another. It has no side effects.
#pragma once

#include <vector>

#include "control/desired.h"

namespace sluice::control {

struct Action {
  enum class What : uint8_t {
    kPut,  // new, or its content changed
    // unchanged, but an object it refers to changed; for a target's volumes: was added or removed
    kAgain,
    kRemove,  // `object` is the one to remove
  };
  What what = What::kPut;
  Key key;
  ObjectPtr object;
};

// Returns the actions in the order in which they must run: an object is put after the objects it
// refers to, and removed before them. A host's lost access takes effect before a LUN is shown to
// other hosts: targets depend on hosts and volumes and are put after both.
std::vector<Action> diff(const Objects& now, const Objects& next);

// Whether `next` may deny access that `now` permits: a host, target or peer is removed, or a host
// or target changed. It is also true for some changes that only open access.
bool may_close_access(const Objects& now, const Objects& next);

}  // namespace sluice::control
