#include "control/volume/lock_attempt.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/log.h"

namespace sluice::control {

LockAttempt::Tried LockAttempt::attempt(VolumeStorage& storage, const wire::DesiredVolume& order,
                                        Nanos now) {
  if (since_ == 0) {
    since_ = ask_at_ = now;
    unanswered_since_ = 0;
    poll_ = limits::kLockPollLeast;
  }
  VolumeStorage::Opened opened = storage.open(order);
  if (opened.pending) return {.outcome = Outcome::kPending};
  if (opened.backend) return verify(storage, order, std::move(opened.backend));
  std::string problem = std::move(opened.problem);
  if (!opened.held) return {.problem = std::move(problem)};
  if (now >= ask_at_ && !ask_holder(storage, order.order(), now, &problem)) {
    return {.problem = std::move(problem)};
  }
  poll_ = std::min(poll_ * 2, limits::kLockPollMost);
  return {.outcome = Outcome::kWaiting, .problem = std::move(problem)};
}

// Checks the record under the lock before the data is used: RECORD_WINS. From then on the record
// names the process to ask for the lock.
LockAttempt::Tried LockAttempt::verify(VolumeStorage& storage, const wire::DesiredVolume& order,
                                       std::unique_ptr<backend::Backend> backend) const {
  Result<std::optional<Record>> found = storage.record();
  if (!found) return {.problem = found.error()};
  Record record = found.value() ? std::move(**found) : Record();
  if (record.epoch > order.epoch()) {
    return {.problem = "the record beside the data is of epoch " + std::to_string(record.epoch) +
                       ", newer than this order"};
  }
  record.volume = volume_;
  record.holder = storage.self();
  record.order = order.order();
  // Outlasts::kProcess suffices: after a power failure there is no holder to ask, and serving
  // writes the record durably.
  const Result<VolumeStorage::Claim> claimed = storage.claim(record, Outlasts::kProcess);
  if (!claimed) return {.problem = claimed.error()};
  return {.outcome = Outcome::kLocked, .backend = std::move(backend), .record = std::move(record)};
}

bool LockAttempt::ask_holder(VolumeStorage& storage, uint64_t order, Nanos now,
                             std::string* problem) {
  const Result<std::optional<Record>> record = storage.record();
  ask_at_ = now + limits::kHolderPatience;
  if (!record || !record.value()) {
    *problem += record ? "; it has left no record to ask it by" : "; " + record.error();
    return true;
  }
  const HolderAnswer answer = storage.ask(*record.value(), order);
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
  const Result<void> killed = storage.kill(*record.value());
  if (killed) {
    log::warning("killed a process that didn't give a volume's lock up",
                 {{"volume", volume_}, {"pid", record.value()->holder.pid}});
  } else {
    *problem += "; it gives no answer: " + killed.error();
  }
  return true;
}

}  // namespace sluice::control
