#include "control/volume/volume_report.h"

namespace sluice::control {

void VolumeReport::send(const wire::VolumeObserved& observed) {
  const std::lock_guard lock(mutex_);
  last_ = observed;
  services_.report(observed);
}

void VolumeReport::send_medium(const lun::MediumHealth& health) {
  const std::lock_guard lock(mutex_);
  if (!differs_locked(health)) return;
  last_->set_medium_not_ready(!health.ready);
  last_->set_medium_problem(health.problem);
  last_->set_medium_stuck(health.stuck);
  last_->set_medium_errors(health.errors);
  services_.report(*last_);
}

void VolumeReport::withdraw_lock() {
  const std::lock_guard lock(mutex_);
  if (last_ && last_->state() == wire::VOLUME_STATE_LOCKED) last_.reset();
}

void VolumeReport::note_problem(const Result<void>& done) {
  const std::lock_guard lock(mutex_);
  problem_ = done ? std::string() : done.error();
}

std::optional<wire::VolumeObserved> VolumeReport::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

bool VolumeReport::answers(uint64_t order) const {
  const std::lock_guard lock(mutex_);
  return last_ && last_->order() == order;
}

int64_t VolumeReport::capacity() const {
  const std::lock_guard lock(mutex_);
  return last_ ? last_->capacity_bytes() : 0;
}

bool VolumeReport::differs_from(const lun::MediumHealth& health) const {
  const std::lock_guard lock(mutex_);
  return differs_locked(health);
}

bool VolumeReport::differs_locked(const lun::MediumHealth& health) const {
  if (!last_ || last_->state() != wire::VOLUME_STATE_SERVING) return false;
  return health != lun::MediumHealth{.ready = !last_->medium_not_ready(),
                                     .problem = last_->medium_problem(),
                                     .stuck = last_->medium_stuck(),
                                     .errors = last_->medium_errors()};
}

std::string VolumeReport::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

}  // namespace sluice::control
