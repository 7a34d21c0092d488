#include "unit/reservations/reservations.h"

#include <algorithm>

#include "base/limits.h"

namespace sluice::lun {

bool same_initiator_port(const NexusId& a, const NexusId& b) {
  return a.isid == b.isid && a.initiator_name == b.initiator_name;
}

bool same_ports(const NexusId& a, const NexusId& b) {
  return a.relative_target_port == b.relative_target_port && same_initiator_port(a, b);
}

bool Registration::covers(const NexusId& id) const {
  if (!all_target_ports) return same_ports(nexus, id);
  return same_initiator_port(nexus, id) && std::find(except_ports.begin(), except_ports.end(),
                                                     id.relative_target_port) == except_ports.end();
}

std::function<bool(const NexusId&)> covered_by(std::vector<Registration> whom, const NexusId& own) {
  return [whom = std::move(whom), own](const NexusId& id) {
    return !same_ports(own, id) && std::any_of(whom.begin(), whom.end(),
                                               [&](const Registration& r) { return r.covers(id); });
  };
}

const Registration* ReservationState::find(const NexusId& id) const {
  for (const Registration& r : registrations) {
    if (r.covers(id)) return &r;
  }
  return nullptr;
}

bool ReservationState::holds(const NexusId& id) const {
  if (type == ReservationType::kNone) return false;
  if (scsi::is_all_registrants(type)) return find(id) != nullptr;
  return holder && same_ports(*holder, id);
}

ReservationState after_power_loss(ReservationState state) {
  if (!state.aptpl) return {};
  state.generation = 0;  // "regardless of the APTPL bit value"
  return state;
}

ReservationRights Reservations::rights(const NexusId& nexus) const {
  ReservationRights rights;
  if (reserve6_ && !same_ports(*reserve6_, nexus)) rights.reserve6 = scsi::kAllowedUnderReserve6;
  if (state_.type != ReservationType::kNone && !compatible_with_persistent(nexus)) {
    rights.persistent = scsi::is_write_exclusive(state_.type)
                            ? uint32_t{scsi::kAllowedUnderWriteExclusive}
                            : uint32_t{scsi::kAllowedUnderExclusiveAccess};
  }
  rights.everything = !reserve6_ && rights.persistent == ReservationRights::kAnything;
  return rights;
}

bool Reservations::allows(const NexusId& nexus, const scsi::CommandInfo& command) const {
  switch (command.operation) {
    case scsi::Operation::kPersistentReserveIn:
    case scsi::Operation::kPersistentReserveOut:
      // SPC-2 §5.5.1: while RESERVE(6) is held, PERSISTENT RESERVE conflicts for all initiators.
      return !reserve6_;
    case scsi::Operation::kReserve6:
    case scsi::Operation::kRelease6:
      return true;
    default:
      return rights(nexus).allow(command.flags);
  }
}

void Reservations::replace(ReservationState state) {
  state_ = std::move(state);
  ++version_;
}

void Reservations::set_reserve6(std::optional<NexusId> holder) {
  if (reserve6_ == holder) return;
  reserve6_ = std::move(holder);
  ++version_;
}

bool Reservations::compatible_with_persistent(const NexusId& nexus) const {
  return state_.holds(nexus) || (scsi::is_registrants_only(state_.type) && registered(nexus));
}

bool Reservations::reserve6(const NexusId& nexus) {
  if (compatible_with_persistent(nexus)) return true;  // GOOD, and nothing is established
  if (!state_.registrations.empty()) return false;     // SPC-2 §5.5.1
  if (reserve6_ && !same_ports(*reserve6_, nexus)) return false;
  set_reserve6(nexus);
  return true;
}

bool Reservations::release6(const NexusId& nexus) {
  if (reserve6_ && same_ports(*reserve6_, nexus)) set_reserve6(std::nullopt);
  return state_.registrations.empty() || compatible_with_persistent(nexus);
}

bool Reservations::begin_change() { return !std::exchange(changing_, true); }

bool Reservations::enqueue_change(std::function<void()> change) {
  if (changes_.size() >= limits::kMaxReservationChanges) return false;
  changes_.push_back(std::move(change));
  return true;
}

std::function<void()> Reservations::end_change() {
  if (changes_.empty()) {
    changing_ = false;
    return {};
  }
  std::function<void()> change = std::move(changes_.front());
  changes_.pop_front();
  return change;
}

}  // namespace sluice::lun
