#include "control/volume/volume_lifecycle.h"

#include <cassert>

#include "base/log.h"

namespace sluice::control {

void VolumeLifecycle::enter(State next) {
  const State before = state_;
  assert(may_follow(before, next));
  if (before == next) return;
  state_ = next;
  log::debug("state of a volume",
             {{"volume", volume_}, {"from", name_of(before)}, {"to", name_of(next)}});
}

bool VolumeLifecycle::holds_lock() const {
  switch (state_) {
    case State::kServing:
    case State::kReleasing:
    case State::kFencing:
      return true;
    default:
      return is_opening();
  }
}

bool VolumeLifecycle::is_opening() const {
  const State state = state_;
  return state == State::kLocked || state == State::kLoading || state == State::kClaiming;
}

bool VolumeLifecycle::has_no_storage() const { return state_ <= State::kLockFailed; }

bool VolumeLifecycle::may_follow(State from, State to) {
  if (from == to) return true;
  // The role that is ordered, or the removal, leads to these from most states.
  const bool ordered = to == State::kFollowing || to == State::kEpochOver || to == State::kRemoved;
  switch (from) {
    case State::kNew:
      return ordered || to == State::kLocking;
    case State::kFollowing:
    case State::kYielded:
    case State::kEpochOver:
    case State::kLockFailed:
      return ordered || to == State::kYielded || to == State::kLocking;
    case State::kLocking:
      return ordered || to == State::kLocked || to == State::kLockFailed || to == State::kClosing;
    case State::kLocked:
      return ordered || to == State::kYielded || to == State::kLoading || to == State::kClosing;
    case State::kLoading:
      return ordered || to == State::kYielded || to == State::kLocked || to == State::kClaiming ||
             to == State::kClosing;
    case State::kClaiming:
      return ordered || to == State::kYielded || to == State::kLocked || to == State::kServing ||
             to == State::kClosing;
    case State::kServing:
      return to == State::kReleasing || to == State::kFencing;
    case State::kReleasing:
    case State::kFencing:
      return to == State::kClosing;
    case State::kClosing:
      return ordered || to == State::kYielded || to == State::kLocking;
    case State::kRemoved:
      return false;
  }
  return false;
}

const char* VolumeLifecycle::name_of(State state) {
  switch (state) {
    case State::kNew:
      return "new";
    case State::kFollowing:
      return "following";
    case State::kYielded:
      return "yielded";
    case State::kEpochOver:
      return "epoch over";
    case State::kLockFailed:
      return "lock failed";
    case State::kLocking:
      return "locking";
    case State::kLocked:
      return "locked";
    case State::kLoading:
      return "loading";
    case State::kClaiming:
      return "claiming";
    case State::kServing:
      return "serving";
    case State::kReleasing:
      return "releasing";
    case State::kFencing:
      return "fencing";
    case State::kClosing:
      return "closing";
    case State::kRemoved:
      return "removed";
  }
  return "unknown";
}

}  // namespace sluice::control
