#include "control/volume/volume.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "base/safety_mutation.h"

namespace sluice::control {

Volume::Volume(std::string uid, uint16_t self, std::unique_ptr<LogicalUnitControl> unit,
               VolumeServices& services, std::function<void()> wake)
    : uid_(std::move(uid)),
      self_(self),
      unit_(std::move(unit)),
      services_(services),
      inbox_(std::make_shared<VolumeInbox>(std::move(wake))),
      report_(services),
      lifecycle_(uid_),
      lock_(uid_) {}

// --- called from outside

HolderAnswer Volume::asked(uint64_t order) {
  if (!lifecycle_.holds_lock()) return {Yield::kNotHeld, 0};
  return inbox_->asked(order);
}

bool Volume::medium_changed() const { return report_.differs_from(unit_->medium_health()); }

void Volume::review_medium() { report_.send_medium(unit_->medium_health()); }

void Volume::review_contact() {
  const uint16_t owner = followed_owner_;
  if (owner != 0 && services_.is_cut_off_from(owner) != cut_off_) inbox_->wake();
}

// --- step()

Nanos Volume::step(Nanos now) {
  take(inbox_->take());
  const Nanos next = step_state(now);
  assert_invariants();
  return next;
}

void Volume::take(VolumeInbox::Mail mail) {
  if (mail.order) take_order(std::move(*mail.order));
  if (mail.on_removed) on_removed_ = std::move(mail.on_removed);
  if (mail.yield_to) yielded_to_ = std::max(yielded_to_.value_or(0), *mail.yield_to);
  if (mail.loaded && locked_ && mail.loaded_epoch == order_->epoch()) {
    locked_->loaded(std::move(*mail.loaded));
  }
  if (mail.released && state() == State::kReleasing) {
    // Without the flush, hosts may lose acknowledged writes: their nexuses were dropped.
    *mail.released ? ended(wire::VOLUME_STATE_RELEASED, {})
                   : ended(wire::VOLUME_STATE_FENCED, "its last flush failed");
  }
  if (mail.fenced && state() == State::kFencing) {
    ended(wire::VOLUME_STATE_FENCED, fence_reason_);
  }
}

void Volume::take_order(wire::DesiredVolume order) {
  if (locked_ && order.epoch() != order_->epoch()) locked_->restart();
  if (!order_ || order.order() != order_->order()) lock_.reset();
  order_ = std::move(order);
  if (mutation_disables(Guard::kOneOwner) && order_->role() == wire::VOLUME_ROLE_FORWARDER) {
    order_->set_role(wire::VOLUME_ROLE_OWNER);
  }
  inbox_->acts_on(order_->order());
}

Nanos Volume::step_state(Nanos now) {
  switch (state()) {
    case State::kServing:
      return step_serving();
    case State::kReleasing:
    case State::kFencing:
      return kNever;  // until the unit's backend is closed
    case State::kClosing:
      return step_closing(now);
    case State::kRemoved:
      return kNever;
    default:
      return follow_order(now);
  }
}

void Volume::assert_invariants() const {
  assert(locked_.has_value() == lifecycle_.is_opening());
  assert(!lifecycle_.holds_lock() || storage_);
  assert(!lifecycle_.has_no_storage() || !storage_);
  assert(!locked_ || locked_->is_claiming() == (state() == State::kClaiming));
  assert(!locked_ || !locked_->has_answer() || state() == State::kLoading);
  assert(!ending_ || state() == State::kClosing);
}

Nanos Volume::step_serving() {
  if (mutation_disables(Guard::kFence) && order_->role() != wire::VOLUME_ROLE_OWNER) {
    report(wire::VOLUME_STATE_RELEASED, serving_epoch_, "a safety mutation goes on");
  } else if (inbox_->newest_epoch() > serving_epoch_) {
    begin_fence("a newer epoch was seen");
  } else if (std::string lost = storage_->lost();
             !lost.empty() && !mutation_disables(Guard::kFence)) {
    begin_fence(lost);
  } else if (on_removed_ || yielded()) {
    begin_release();
  } else if (order_->role() == wire::VOLUME_ROLE_RELEASING ||
             order_->role() == wire::VOLUME_ROLE_FORWARDER) {
    begin_release();
  } else {
    shape_served();
    // An order of a newer version is reported even if its content is the same.
    if (!report_.answers(order_->order()) || report_.capacity() != capacity() || medium_changed()) {
      report(wire::VOLUME_STATE_SERVING, serving_epoch_, problem());
    }
  }
  return kNever;
}

Nanos Volume::follow_order(Nanos now) {
  if (on_removed_) {
    if (release_storage(State::kRemoved)) std::exchange(on_removed_, nullptr)();
    return kNever;
  }
  if (!order_) return kNever;
  if (locked_ && yielded() && !release_storage(State::kYielded)) return kNever;
  switch (order_->role()) {
    case wire::VOLUME_ROLE_ACQUIRING:
      return step_acquiring(now);
    case wire::VOLUME_ROLE_OWNER:
      return step_owner(now);
    case wire::VOLUME_ROLE_RELEASING:
      follow(lun::Standing::kTransitioning);
      if (!release_storage(State::kEpochOver)) return kNever;
      if (order_->epoch() > closed_epoch_) {
        close_epoch(wire::VOLUME_STATE_RELEASED, "it was not open");
      } else {
        report_closed();
      }
      return kNever;
    default:
      follow_owner();
      report_.note_problem(unit_->shape(*order_, false));
      release_storage(State::kFollowing);
      return kNever;
  }
}

bool Volume::yielded() const { return yielded_to_ && *yielded_to_ >= order_->order(); }

Nanos Volume::step_acquiring(Nanos now) {
  follow_owner();
  report_.note_problem(unit_->shape(*order_, false));
  if (yielded()) {
    release_storage(State::kYielded);
    return kNever;
  }
  if (locked_) {
    if (!report_.answers(order_->order())) report(wire::VOLUME_STATE_LOCKED, order_->epoch(), {});
    return kNever;
  }
  const LockAttempt::Tried tried = try_lock(now);
  if (tried.outcome == LockAttempt::Outcome::kPending) return kNever;
  if (tried.outcome == LockAttempt::Outcome::kLocked) {
    report(wire::VOLUME_STATE_LOCKED, order_->epoch(), {});
    return kNever;
  }
  const bool final = tried.outcome == LockAttempt::Outcome::kFailed;
  const bool late = lock_.waited(now) >= 2 * limits::kHolderPatience;
  if ((final || late) && std::exchange(failed_order_, order_->order()) != order_->order()) {
    report(wire::VOLUME_STATE_FAILED, order_->epoch(), tried.problem);
  }
  if (!final) return lock_.poll();
  // A newer order checks the pool again: a filesystem may be mounted by then.
  release_storage(State::kLockFailed);
  return kNever;
}

Nanos Volume::step_owner(Nanos now) {
  if (order_->epoch() <= closed_epoch_) {
    follow_owner();
    if (release_storage(State::kEpochOver)) report_closed();
    return kNever;
  }
  if (yielded()) {
    follow_owner();
    if (!release_storage(State::kEpochOver)) return kNever;
    close_epoch(wire::VOLUME_STATE_RELEASED, "its lock was asked for with a newer order");
    return kNever;
  }
  if (!locked_) {
    follow(lun::Standing::kTransitioning);
    const LockAttempt::Tried tried = try_lock(now);
    if (tried.outcome == LockAttempt::Outcome::kPending) return kNever;
    const bool waits = tried.outcome == LockAttempt::Outcome::kWaiting;
    if (waits && lock_.waited(now) < limits::kLockGivesUp) return lock_.poll();
    if (tried.outcome != LockAttempt::Outcome::kLocked) {
      fail(tried.problem);
      return kNever;
    }
  }
  if (const std::string lost = storage_->lost(); !lost.empty()) {
    fail(lost);
    return kNever;
  }
  return claim_and_serve();
}

// --- from the lock to serving

LockAttempt::Tried Volume::try_lock(Nanos now) {
  lifecycle_.enter(State::kLocking);
  if (!storage_) {
    Result<std::shared_ptr<VolumeStorage>> storage =
        services_.storage_of(*order_, [inbox = std::weak_ptr(inbox_)] {
          if (const auto there = inbox.lock()) there->wake();
        });
    if (!storage) return {.problem = storage.error()};
    storage_ = std::move(storage).value();
  }
  LockAttempt::Tried tried = lock_.attempt(*storage_, *order_, now);
  if (tried.outcome == LockAttempt::Outcome::kLocked) {
    locked_.emplace(
        HeldLock::Setup{
            .volume = uid_, .lifecycle = lifecycle_, .services = services_, .inbox = inbox_},
        std::move(tried.backend), std::move(tried.record));
  }
  return tried;
}

Nanos Volume::claim_and_serve() {
  HeldLock::Claimed claimed = locked_->claim(*order_, *storage_);
  switch (claimed.outcome) {
    case HeldLock::Outcome::kPending:
      return kNever;
    case HeldLock::Outcome::kRetry:
      return limits::kLoadAgain;
    case HeldLock::Outcome::kFailed:
      fail(claimed.problem);
      return kNever;
    case HeldLock::Outcome::kClaimed:
      break;
  }
  locked_.reset();
  lun::ReservationState reservations = claimed.record.reservations;
  services_.open_commits(std::move(claimed.record), storage_);
  lifecycle_.enter(State::kServing);
  serving_epoch_ = order_->epoch();
  role_ = lun::Role{lun::Standing::kOwner, serving_epoch_, self_};
  unit_->serve(std::move(claimed.backend), std::move(reservations), serving_epoch_);
  shape_served();
  report(wire::VOLUME_STATE_SERVING, serving_epoch_, problem());
  return kNever;
}

// --- closing

void Volume::begin_release() {
  lifecycle_.enter(State::kReleasing);
  unit_->release([inbox = std::weak_ptr(inbox_)](bool flushed) {
    if (const auto there = inbox.lock()) there->released(flushed);
  });
}

void Volume::begin_fence(const std::string& why) {
  lifecycle_.enter(State::kFencing);
  fence_reason_ = why;
  unit_->fence([inbox = std::weak_ptr(inbox_)] {
    if (const auto there = inbox.lock()) there->fenced();
  });
}

void Volume::ended(wire::VolumeState state, const std::string& why) {
  role_.reset();
  services_.close_commits(uid_);
  unlock();
  closed_epoch_ = serving_epoch_;
  ending_ = Ending{state, serving_epoch_, why};
  lifecycle_.enter(State::kClosing);
}

// The unit's backend, or one that was opened but not served, is closed. Waits until the storage is
// closed, too.
Nanos Volume::step_closing(Nanos now) {
  if (storage_ && !storage_->is_closed()) return kNever;
  storage_.reset();
  if (ending_) report(ending_->state, ending_->epoch, ending_->why);
  ending_.reset();
  return follow_order(now);
}

void Volume::unlock() {
  locked_.reset();
  if (storage_) storage_->begin_close();
  lock_.reset();
  report_.withdraw_lock();
}

bool Volume::release_storage(State next) {
  unlock();
  if (storage_ && !storage_->is_closed()) {
    lifecycle_.enter(State::kClosing);
    return false;
  }
  storage_.reset();
  lifecycle_.enter(next);
  return true;
}

void Volume::fail(const std::string& why) {
  log::error("volume can't be served",
             {{"volume", uid_}, {"epoch", order_->epoch()}, {"reason", why}});
  // R11: only the control plane knows whether another gateway can take over. Its answer to this
  // report is the next order.
  follow(lun::Standing::kTransitioning);
  closed_epoch_ = order_->epoch();
  if (release_storage(State::kEpochOver)) {
    report(wire::VOLUME_STATE_FAILED, closed_epoch_, why);
  } else {
    ending_ = Ending{wire::VOLUME_STATE_FAILED, closed_epoch_, why};
  }
}

void Volume::close_epoch(wire::VolumeState state, const std::string& why) {
  closed_epoch_ = order_->epoch();
  report(state, order_->epoch(), why);
}

// Repeats the report: the role was ordered again in an epoch that is over for this gateway.
void Volume::report_closed() {
  const std::optional<wire::VolumeObserved> reported = observed();
  if (reported && reported->order() == order_->order()) return;
  const bool again = reported && reported->epoch() == closed_epoch_;
  report(again ? reported->state() : wire::VOLUME_STATE_RELEASED, closed_epoch_,
         reported ? reported->reason() : std::string());
}

// A growth that takes long delays neither other changes nor their reports.
void Volume::shape_served() {
  const Result<VolumeStorage::Growth> grown =
      storage_->grow(static_cast<uint64_t>(order_->size_bytes()));
  growing_ = grown && grown.value() == VolumeStorage::Growth::kPending;
  if (grown && !growing_) return report_.note_problem(unit_->shape(*order_, true));
  wire::DesiredVolume rest = *order_;
  rest.clear_size_bytes();
  const Result<void> shaped = unit_->shape(rest, true);
  report_.note_problem(grown ? shaped : Result<void>(Error{grown.error()}));
}

int64_t Volume::capacity() const { return growing_ ? report_.capacity() : order_->size_bytes(); }

void Volume::follow(lun::Standing standing) {
  const bool follows_owner =
      standing == lun::Standing::kForwarder || standing == lun::Standing::kCutOff;
  const uint16_t owner = follows_owner ? static_cast<uint16_t>(order_->owner()) : uint16_t{0};
  cut_off_ = standing == lun::Standing::kCutOff;
  followed_owner_ = owner;
  const lun::Role role{standing, order_->epoch(), owner};
  if (role_ == role) return;
  role_ = role;
  unit_->follow(role);
}

void Volume::follow_owner() {
  if (order_->owner() != 0 && order_->owner() != self_) {
    const bool cut_off = services_.is_cut_off_from(static_cast<uint16_t>(order_->owner()));
    return follow(cut_off ? lun::Standing::kCutOff : lun::Standing::kForwarder);
  }
  follow(order_->transitioning() || order_->owner() == self_ ? lun::Standing::kTransitioning
                                                             : lun::Standing::kUnavailable);
}

void Volume::report(wire::VolumeState state, uint64_t epoch, const std::string& why) {
  wire::VolumeObserved observed;
  observed.set_uid(uid_);
  observed.set_epoch(epoch);
  observed.set_state(state);
  observed.set_reason(why);
  observed.set_order(order_->order());
  observed.set_capacity_bytes(capacity());
  if (storage_) observed.set_allocated_bytes(storage_->allocated_bytes());
  if (state == wire::VOLUME_STATE_SERVING) {
    const lun::MediumHealth medium = unit_->medium_health();
    observed.set_medium_not_ready(!medium.ready);
    observed.set_medium_problem(medium.problem);
    observed.set_medium_stuck(medium.stuck);
    observed.set_medium_errors(medium.errors);
  }
  report_.send(observed);
}

}  // namespace sluice::control
