// What to do to come from one desired state to another: a pure comparison.
#pragma once

#include <vector>

#include "control/desired.h"

namespace sluice::control {

struct Action {
  enum class What : uint8_t {
    kPut,     // new, or another one than before
    kAgain,   // the same, but something it refers to isn't: for a target's volumes, came or went
    kRemove,  // `object` is the one that was
  };
  What what = What::kPut;
  Key key;
  ObjectPtr object;
};

// In the order they have to be done: an object comes after those it refers to, and is removed
// before them. A host lets nobody in whom it no longer should before a LUN is shown to others:
// targets, which both hang on, are put once, when hosts and volumes are there.
std::vector<Action> diff(const Objects& now, const Objects& next);

// Whether `next` may deny what `now` admits: a host, a target or a peer is gone, or a host or a
// target differs. It says so also of changes that open access.
bool may_close_access(const Objects& now, const Objects& next);

}  // namespace sluice::control
