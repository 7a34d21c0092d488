// What a unit finds of its reservations when it comes up.
#include <mutex>

#include "lun/reservations.h"
#include "lun/unit.h"

namespace sluice::lun {

Result<void> Unit::restore_reservations() {
  if (!store_) return {};
  Result<ReservationState> state = store_->load(uuid_text());
  if (!state) return Error{state.error()};
  const std::lock_guard lock(mutex_);
  reservations_->replace(std::move(state).value());
  reservations_changed();
  return {};
}

}  // namespace sluice::lun
