// What a unit finds of its reservations when it comes up, and what its gate knows of them.
#include <mutex>

#include "lun/reservations/reservation_contract.h"
#include "lun/unit.h"

namespace sluice::lun {

void Unit::reservations_changed() {
  const uint64_t now =
      reservations_->version() * kGateStep | (reservations_->held() ? uint64_t{kReserved} : 0);
  constexpr uint64_t kOthers = (kGateStep - 1) & ~uint64_t{kReserved};
  // In one step: a version seen with the flag of another would be remembered as open.
  uint64_t word = gate_.load(std::memory_order_relaxed);
  while (!gate_.compare_exchange_weak(word, (word & kOthers) | now, std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
  }
}

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
