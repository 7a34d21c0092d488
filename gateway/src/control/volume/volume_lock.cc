// How a volume takes and releases the lock of its data.
#include <algorithm>

#include "base/limits.h"
#include "base/log.h"
#include "control/volume/volume.h"

namespace sluice::control {

Volume::Lock Volume::try_lock(Nanos now, std::string* problem) {
  if (!storage_) {
    Result<std::shared_ptr<VolumeStorage>> storage = services_.storage_of(order_, waker());
    if (!storage) {
      *problem = storage.error();
      return Lock::kFailed;
    }
    storage_ = std::move(storage).value();
  }
  if (waits_since_ == 0) {
    waits_since_ = ask_at_ = now;
    unanswered_since_ = 0;
    poll_ = limits::kLockPollLeast;
  }
  VolumeStorage::Opened opened = storage_->open(order_);
  if (opened.pending) return Lock::kPending;
  if (opened.backend) return taken(std::move(opened.backend), problem);
  *problem = opened.problem;
  if (!opened.held) return Lock::kFailed;
  if (now >= ask_at_ && !ask_for_it(now, problem)) return Lock::kFailed;
  poll_ = std::min(poll_ * 2, limits::kLockPollMost);
  return Lock::kWaiting;
}

// Checks the record under the lock before the data is used: RECORD_WINS. From then on the record
// names the process to ask for the lock.
Volume::Lock Volume::taken(std::unique_ptr<backend::Backend> backend, std::string* problem) {
  Result<std::optional<Record>> found = storage_->record();
  if (!found) {
    *problem = found.error();
    return Lock::kFailed;
  }
  Record record = found.value() ? std::move(**found) : Record();
  if (record.epoch > order_.epoch()) {
    *problem = "the record beside the data is of epoch " + std::to_string(record.epoch) +
               ", newer than this order";
    return Lock::kFailed;
  }
  record.volume = uid_;
  record.holder = storage_->self();
  record.order = order_.order();
  // Outlasts::kProcess suffices: after a power failure there is no holder to ask, and serving
  // writes the record durably.
  const Result<VolumeStorage::Claim> claimed = storage_->claim(record, Outlasts::kProcess);
  if (!claimed) {
    *problem = claimed.error();
    return Lock::kFailed;
  }
  record_ = std::move(record);
  backend_ = std::move(backend);
  const std::lock_guard lock(mutex_);
  holds_ = true;
  acting_on_ = order_.order();
  return Lock::kLocked;
}

bool Volume::ask_for_it(Nanos now, std::string* problem) {
  const Result<std::optional<Record>> record = storage_->record();
  ask_at_ = now + limits::kHolderPatience;
  if (!record || !record.value()) {
    *problem += record ? "; it has left no record to ask it by" : "; " + record.error();
    return true;
  }
  const HolderAnswer answer = storage_->ask(*record.value(), order_.order());
  poll_ = limits::kLockPollLeast;
  const bool answered = answer.yield != Yield::kSilent && answer.yield != Yield::kUnreachable;
  if (answered) unanswered_since_ = 0;
  switch (answer.yield) {
    case Yield::kYielding:
      return true;
    case Yield::kRefused:
      *problem = "the lock's holder acts on order " + std::to_string(answer.order) +
                 ", newer than this one";
      return false;
    case Yield::kNotHeld:
      return true;
    case Yield::kUnreachable:
      // The holder may be in an orderly shutdown, however long it has answered before.
      if (unanswered_since_ == 0) unanswered_since_ = now;
      if (now - unanswered_since_ < limits::kHolderPatience) return true;
      break;
    case Yield::kSilent:
      break;
  }
  const Result<void> killed = storage_->kill(*record.value());
  if (killed) {
    log::warning("killed a process that didn't give a volume's lock up",
                 {{"volume", uid_}, {"pid", record.value()->holder.pid}});
  } else {
    *problem += "; it gives no answer: " + killed.error();
  }
  return true;
}

void Volume::unlock() {
  backend_.reset();
  record_.reset();
  claim_.reset();
  if (storage_) storage_->begin_close();
  loaded_.reset();
  loading_ = false;
  waits_since_ = 0;
  const std::lock_guard lock(mutex_);
  holds_ = false;
  // The LOCKED report is repeated over each new stream. After a restore of the store an order of
  // the same number may come again, and this report would be treated as its answer.
  if (observed_ && observed_->state() == wire::VOLUME_STATE_LOCKED) observed_.reset();
}

bool Volume::release_lock() {
  unlock();
  if (storage_ && !storage_->is_closed()) {
    phase_ = Phase::kClosing;
    return false;
  }
  storage_.reset();
  return true;
}

}  // namespace sluice::control
