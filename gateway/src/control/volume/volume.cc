#include "control/volume/volume.h"

#include <algorithm>

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
      wake_(std::move(wake)) {}

// --- called from outside

template <class Change>
void Volume::mail(Change change) {
  {
    const std::lock_guard lock(mutex_);
    change(mail_);
  }
  wake_();
}

template <class Change>
void Volume::mail_to(const std::weak_ptr<Volume>& volume, Change change) {
  if (const std::shared_ptr<Volume> there = volume.lock()) there->mail(std::move(change));
}

std::function<void()> Volume::waker() {
  return [me = weak_from_this()] { mail_to(me, [](Mail&) {}); };
}

Result<void> Volume::order(const wire::DesiredVolume& volume) {
  {
    const std::lock_guard lock(mutex_);
    if (volume.order() < newest_order_ || volume.epoch() < newest_epoch_) {
      return Error{"order " + std::to_string(volume.order()) + " of epoch " +
                   std::to_string(volume.epoch()) + " is older than what is known here: order " +
                   std::to_string(newest_order_) + ", epoch " + std::to_string(newest_epoch_)};
    }
    newest_order_ = volume.order();
    newest_epoch_ = volume.epoch();
  }
  mail([&](Mail& m) { m.order = volume; });
  return {};
}

void Volume::remove(std::function<void()> on_removed) {
  mail([&](Mail& m) { m.on_removed = std::move(on_removed); });
}

void Volume::saw_epoch(uint64_t epoch) {
  mail([&](Mail&) { newest_epoch_ = std::max(newest_epoch_, epoch); });
}

HolderAnswer Volume::asked(uint64_t order) {
  {
    const std::lock_guard lock(mutex_);
    if (!holds_) return {Yield::kNotHeld, 0};
    if (order < acting_on_) return {Yield::kRefused, acting_on_};
  }
  mail([&](Mail& m) { m.yield_to = std::max(m.yield_to.value_or(0), order); });
  return {Yield::kYielding, 0};
}

bool Volume::medium_changed() const {
  const std::optional<wire::VolumeObserved> reported = observed();
  if (!reported || reported->state() != wire::VOLUME_STATE_SERVING) return false;
  return unit_->medium_health() != lun::MediumHealth{.ready = !reported->medium_not_ready(),
                                                     .problem = reported->medium_problem()};
}

void Volume::review_medium() {
  if (medium_changed()) wake_();
}

std::optional<wire::VolumeObserved> Volume::observed() const {
  const std::lock_guard lock(mutex_);
  return observed_;
}

std::string Volume::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

// --- step()

Nanos Volume::step(Nanos now) {
  Mail news;
  {
    const std::lock_guard lock(mutex_);
    std::swap(news, mail_);
  }
  take(std::move(news));
  if (phase_ == Phase::kServing) return step_serving();
  if (phase_ == Phase::kClosing) return step_closing(now);
  if (phase_ != Phase::kIdle) return kNever;  // until the unit is released
  return step_idle(now);
}

void Volume::take(Mail news) {
  if (news.order) {
    if (ordered_ && news.order->epoch() != order_.epoch()) {
      loading_ = false;
      loaded_.reset();
      claim_.reset();
    }
    if (!ordered_ || news.order->order() != order_.order()) waits_since_ = 0;
    order_ = std::move(*news.order);
    if (mutation_disables(Guard::kOneOwner) && order_.role() == wire::VOLUME_ROLE_FORWARDER) {
      order_.set_role(wire::VOLUME_ROLE_OWNER);
    }
    ordered_ = true;
    const std::lock_guard lock(mutex_);
    acting_on_ = order_.order();
  }
  if (news.on_removed) on_removed_ = std::move(news.on_removed);
  if (news.yield_to) yielded_to_ = std::max(yielded_to_.value_or(0), *news.yield_to);
  if (news.loaded && loading_ && news.loaded_epoch == order_.epoch()) {
    loading_ = false;
    loaded_ = std::move(news.loaded);
  }
  if (news.released && phase_ == Phase::kReleasing) {
    // Without the flush, hosts may lose acknowledged writes: their nexuses were dropped.
    *news.released ? ended(wire::VOLUME_STATE_RELEASED, {})
                   : ended(wire::VOLUME_STATE_FENCED, "its last flush failed");
  }
  if (news.fenced && phase_ == Phase::kFencing) {
    ended(wire::VOLUME_STATE_FENCED, fence_reason_);
  }
}

Nanos Volume::step_serving() {
  uint64_t newest_epoch = 0;
  {
    const std::lock_guard lock(mutex_);
    newest_epoch = newest_epoch_;
  }
  if (mutation_disables(Guard::kFence) && order_.role() != wire::VOLUME_ROLE_OWNER) {
    report(wire::VOLUME_STATE_RELEASED, serving_epoch_, "a safety mutation goes on");
  } else if (newest_epoch > serving_epoch_) {
    begin_fence("a newer epoch was seen");
  } else if (std::string lost = storage_->lost();
             !lost.empty() && !mutation_disables(Guard::kFence)) {
    begin_fence(lost);
  } else if (on_removed_ || (yielded_to_ && *yielded_to_ >= order_.order())) {
    begin_release();
  } else if (order_.role() == wire::VOLUME_ROLE_RELEASING ||
             order_.role() == wire::VOLUME_ROLE_FORWARDER) {
    begin_release();
  } else {
    shape_served();
    const std::optional<wire::VolumeObserved> reported = observed();
    // An order of a newer version is reported even if its content is the same.
    if (!reported || reported->order() != order_.order() ||
        reported->capacity_bytes() != capacity() || medium_changed()) {
      report(wire::VOLUME_STATE_SERVING, serving_epoch_, problem());
    }
  }
  return kNever;
}

Nanos Volume::step_idle(Nanos now) {
  if (on_removed_) {
    if (!release_lock()) return kNever;
    std::exchange(on_removed_, nullptr)();
    return kNever;
  }
  if (!ordered_) return kNever;
  if (backend_ && yielded_to_ && *yielded_to_ >= order_.order() && !release_lock()) return kNever;
  switch (order_.role()) {
    case wire::VOLUME_ROLE_ACQUIRING:
      return step_acquiring(now);
    case wire::VOLUME_ROLE_OWNER:
      return step_owner(now);
    case wire::VOLUME_ROLE_RELEASING:
      follow(lun::Standing::kTransitioning);
      if (!release_lock()) return kNever;
      if (order_.epoch() > closed_epoch_) {
        close_epoch(wire::VOLUME_STATE_RELEASED, "it was not open");
      } else {
        report_closed();
      }
      return kNever;
    default:
      follow_owner();
      note_problem(unit_->shape(order_, false));
      release_lock();
      return kNever;
  }
}

Nanos Volume::step_acquiring(Nanos now) {
  follow_owner();
  note_problem(unit_->shape(order_, false));
  const std::optional<wire::VolumeObserved> reported = observed();
  if (!backend_) {
    if (yielded_to_ && *yielded_to_ >= order_.order()) return kNever;  // until a newer order
    std::string problem;
    const Lock lock = try_lock(now, &problem);
    if (lock == Lock::kPending) return kNever;
    if (lock != Lock::kLocked) {
      const bool final = lock == Lock::kFailed;
      const bool late = now - waits_since_ >= 2 * limits::kHolderPatience;
      if ((final || late) && std::exchange(failed_order_, order_.order()) != order_.order()) {
        report(wire::VOLUME_STATE_FAILED, order_.epoch(), problem);
      }
      // A newer order checks the pool again: a filesystem may be mounted by then.
      if (final) release_lock();
      return final ? kNever : poll_;
    }
    report(wire::VOLUME_STATE_LOCKED, order_.epoch(), {});
  } else if (!reported || reported->order() != order_.order()) {
    report(wire::VOLUME_STATE_LOCKED, order_.epoch(), {});
  }
  return kNever;
}

Nanos Volume::step_owner(Nanos now) {
  if (order_.epoch() <= closed_epoch_) {
    follow_owner();
    if (release_lock()) report_closed();
    return kNever;
  }
  if (yielded_to_ && *yielded_to_ >= order_.order()) {
    follow_owner();
    if (!release_lock()) return kNever;
    close_epoch(wire::VOLUME_STATE_RELEASED, "its lock was asked for with a newer order");
    return kNever;
  }
  if (!backend_) {
    follow(lun::Standing::kTransitioning);
    std::string problem;
    const Lock lock = try_lock(now, &problem);
    if (lock == Lock::kPending) return kNever;
    if (lock == Lock::kWaiting && now - waits_since_ < limits::kLockGivesUp) return poll_;
    if (lock != Lock::kLocked) {
      fail(problem);
      return kNever;
    }
  }
  if (const std::string lost = storage_->lost(); !lost.empty()) {
    fail(lost);
    return kNever;
  }
  if (claim_) return claim_and_serve();
  if (loaded_) {
    Loaded loaded = std::move(*loaded_);
    loaded_.reset();
    return serve_with(std::move(loaded));
  }
  if (!std::exchange(loading_, true)) {
    // In this epoch only an earlier process of this gateway can have sent a commit.
    const uint64_t epoch = order_.epoch();
    services_.load(*record_, epoch, record_->epoch >= epoch,
                   [me = weak_from_this(), epoch](Loaded loaded) {
                     mail_to(me, [&](Mail& m) {
                       m.loaded = std::move(loaded);
                       m.loaded_epoch = epoch;
                     });
                   });
  }
  return kNever;
}

// --- opening and closing

void Volume::begin_release() {
  phase_ = Phase::kReleasing;
  unit_->release([me = weak_from_this()](bool flushed) {
    mail_to(me, [&](Mail& m) { m.released = flushed; });
  });
}

void Volume::begin_fence(const std::string& why) {
  phase_ = Phase::kFencing;
  fence_reason_ = why;
  unit_->fence([me = weak_from_this()] { mail_to(me, [](Mail& m) { m.fenced = true; }); });
}

void Volume::ended(wire::VolumeState state, const std::string& why) {
  role_.reset();
  services_.close_commits(uid_);
  unlock();
  closed_epoch_ = serving_epoch_;
  ending_ = Ending{state, serving_epoch_, why};
  phase_ = Phase::kClosing;
}

// The unit's backend, or one that was opened but not served, is closed. Waits until the storage is
// closed, too.
Nanos Volume::step_closing(Nanos now) {
  if (storage_ && !storage_->is_closed()) return kNever;
  storage_.reset();
  phase_ = Phase::kIdle;
  if (ending_) report(ending_->state, ending_->epoch, ending_->why);
  ending_.reset();
  return step_idle(now);
}

void Volume::fail(const std::string& why) {
  log::error("volume can't be served",
             {{"volume", uid_}, {"epoch", order_.epoch()}, {"reason", why}});
  follow(order_.transitioning() ? lun::Standing::kTransitioning : lun::Standing::kUnavailable);
  closed_epoch_ = order_.epoch();
  if (release_lock()) {
    report(wire::VOLUME_STATE_FAILED, closed_epoch_, why);
  } else {
    ending_ = Ending{wire::VOLUME_STATE_FAILED, closed_epoch_, why};
  }
}

void Volume::close_epoch(wire::VolumeState state, const std::string& why) {
  closed_epoch_ = order_.epoch();
  report(state, order_.epoch(), why);
}

// Repeats the report: the role was ordered again in an epoch that is over for this gateway.
void Volume::report_closed() {
  const std::optional<wire::VolumeObserved> reported = observed();
  if (reported && reported->order() == order_.order()) return;
  const bool again = reported && reported->epoch() == closed_epoch_;
  report(again ? reported->state() : wire::VOLUME_STATE_RELEASED, closed_epoch_,
         reported ? reported->reason() : std::string());
}

// A growth that takes long delays neither other changes nor their reports.
void Volume::shape_served() {
  const Result<VolumeStorage::Growth> grown =
      storage_->grow(static_cast<uint64_t>(order_.size_bytes()));
  growing_ = grown && grown.value() == VolumeStorage::Growth::kPending;
  if (grown && !growing_) return note_problem(unit_->shape(order_, true));
  wire::DesiredVolume rest = order_;
  rest.clear_size_bytes();
  const Result<void> shaped = unit_->shape(rest, true);
  note_problem(grown ? shaped : Result<void>(Error{grown.error()}));
}

int64_t Volume::capacity() const {
  if (!growing_) return order_.size_bytes();
  const std::lock_guard lock(mutex_);
  return observed_ ? observed_->capacity_bytes() : 0;
}

void Volume::note_problem(const Result<void>& done) {
  const std::lock_guard lock(mutex_);
  problem_ = done ? std::string() : done.error();
}

void Volume::follow(lun::Standing standing) {
  const uint16_t owner =
      standing == lun::Standing::kForwarder ? static_cast<uint16_t>(order_.owner()) : uint16_t{0};
  const lun::Role role{standing, order_.epoch(), owner};
  if (role_ == role) return;
  role_ = role;
  unit_->follow(role);
}

void Volume::follow_owner() {
  if (order_.owner() != 0 && order_.owner() != self_) return follow(lun::Standing::kForwarder);
  follow(order_.transitioning() || order_.owner() == self_ ? lun::Standing::kTransitioning
                                                           : lun::Standing::kUnavailable);
}

void Volume::report(wire::VolumeState state, uint64_t epoch, const std::string& why) {
  wire::VolumeObserved observed;
  observed.set_uid(uid_);
  observed.set_epoch(epoch);
  observed.set_state(state);
  observed.set_reason(why);
  observed.set_order(order_.order());
  observed.set_capacity_bytes(capacity());
  if (storage_) observed.set_allocated_bytes(storage_->allocated_bytes());
  if (state == wire::VOLUME_STATE_SERVING) {
    const lun::MediumHealth medium = unit_->medium_health();
    observed.set_medium_not_ready(!medium.ready);
    observed.set_medium_problem(medium.problem);
  }
  {
    const std::lock_guard lock(mutex_);
    observed_ = observed;
  }
  services_.report(observed);
}

}  // namespace sluice::control
