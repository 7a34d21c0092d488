#include "lun/reservations.h"

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

bool Reservations::allows(const NexusId& nexus, const scsi::CommandInfo& command) const {
  const scsi::Operation op = command.operation;
  const bool is_reserve6 = op == scsi::Operation::kReserve6 || op == scsi::Operation::kRelease6;
  const bool is_persistent =
      op == scsi::Operation::kPersistentReserveIn || op == scsi::Operation::kPersistentReserveOut;
  if (reserve6_) {
    // SPC-2 §5.5.1: while RESERVE(6) holds, PERSISTENT RESERVE conflicts for everybody.
    if (is_persistent) return false;
    if (is_reserve6 || same_ports(*reserve6_, nexus)) return true;
    if (!(command.flags & scsi::kAllowedUnderReserve6)) return false;
  }
  if (state_.type == ReservationType::kNone || is_reserve6 || is_persistent) return true;
  if (state_.holds(nexus)) return true;
  if (scsi::is_registrants_only(state_.type) && registered(nexus)) return true;
  return (command.flags &
          (scsi::is_write_exclusive(state_.type) ? scsi::kAllowedUnderWriteExclusive
                                                 : scsi::kAllowedUnderExclusiveAccess)) != 0;
}

bool Reservations::compatible_with_persistent(const NexusId& nexus) const {
  return state_.holds(nexus) || (scsi::is_registrants_only(state_.type) && registered(nexus));
}

bool Reservations::reserve6(const NexusId& nexus) {
  if (compatible_with_persistent(nexus)) return true;  // GOOD, and nothing is established
  if (!state_.registrations.empty()) return false;     // SPC-2 §5.5.1
  if (reserve6_ && !same_ports(*reserve6_, nexus)) return false;
  reserve6_ = nexus;
  return true;
}

bool Reservations::release6(const NexusId& nexus) {
  if (reserve6_ && same_ports(*reserve6_, nexus)) reserve6_.reset();
  return state_.registrations.empty() || compatible_with_persistent(nexus);
}

bool Reservations::begin_change() { return !std::exchange(changing_, true); }

bool Reservations::wait_for_turn(std::function<void()> turn) {
  if (turns_.size() >= limits::kMaxReservationChanges) return false;
  turns_.push_back(std::move(turn));
  return true;
}

std::function<void()> Reservations::end_change() {
  if (turns_.empty()) {
    changing_ = false;
    return {};
  }
  std::function<void()> turn = std::move(turns_.front());
  turns_.pop_front();
  return turn;
}

}  // namespace sluice::lun
