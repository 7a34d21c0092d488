#include "commands/gate.h"

#include <mutex>

#include "base/limits.h"
#include "base/safety_mutation.h"
#include "scsi/pr_out_list.h"
#include "unit/reservations/reservations.h"
#include "unit/statistics.h"
#include "unit/unit_sense.h"

namespace sluice::lun {
namespace {

scsi::Sense attention_sense(UnitAttention ua) {
  return scsi::Sense::make(scsi::SenseKey::kUnitAttention, ua.asc, ua.ascq);
}

// For a read-only host: it may release what it has. Whether REGISTER does depends on its parameter
// list, which reservation_commands.cc checks.
bool may_take_rights(uint16_t service_action) {
  switch (static_cast<scsi::PrOutAction>(service_action)) {
    case scsi::PrOutAction::kRegister:
    case scsi::PrOutAction::kRegisterAndIgnoreExistingKey:
    case scsi::PrOutAction::kRelease:
      return false;
    default:
      return true;
  }
}

// Commands that a read-only host may not send: those that change blocks or the mode of the unit,
// stop the unit or reserve it. A third-party copy counts, because it writes blocks.
bool changes_unit(const Command& command) {
  const scsi::CommandInfo& info = *command.info;
  switch (info.operation) {
    case scsi::Operation::kExtendedCopy:
    case scsi::Operation::kWriteUsingToken:
    case scsi::Operation::kModeSelect:
    case scsi::Operation::kReserve6:
      return true;
    case scsi::Operation::kPersistentReserveOut:
      return may_take_rights(info.service_action);
    case scsi::Operation::kStartStopUnit:
      return (command.full_cdb()[4] & 0x01) == 0;  // START
    default:
      return info.flags & scsi::kMediumWrite;
  }
}

bool concerns_reservations(scsi::Operation operation) {
  return operation == scsi::Operation::kReserve6 || operation == scsi::Operation::kRelease6 ||
         operation == scsi::Operation::kPersistentReserveIn ||
         operation == scsi::Operation::kPersistentReserveOut;
}

// `word` is the current gate word. If this nexus's rights belong to another version of the
// reservations, computes them again. Returns the word of the rights.
uint64_t refresh_rights(Unit& unit, CommandContext& itl, uint64_t word) {
  if (word / Unit::kGateStep == itl.rights_version) [[likely]]
    return word;
  const std::lock_guard lock(unit.mutex());
  word = unit.gate_word();  // its version changes under the mutex only
  itl.rights = unit.reservations().rights(itl.nexus_id());
  itl.rights_version = word / Unit::kGateStep;
  return word;
}

bool passes_reservations(Unit& unit, const Command& command) {
  const CommandContext& itl = *command.itl;
  if (!itl.rights.everything && concerns_reservations(command.info->operation)) {
    const std::lock_guard lock(unit.mutex());
    return unit.reservations().allows(command.nexus->id(), *command.info);
  }
  return itl.rights.allow(scsi::flags_of(*command.info, command.full_cdb()));
}

// Of an I_T_L nexus that is read-only, or a unit whose backend is read-only.
Verdict admit_as_reader(const Command& command, Decision* decision) {
  if (!command.info) {
    // INVALID COMMAND OPERATION CODE: an unknown command may change the unit.
    return decision->answer(scsi::Sense::make(scsi::SenseKey::kIllegalRequest, 0x20, 0x00));
  }
  if (!changes_unit(command)) return Verdict::kProceed;
  return decision->answer(scsi::Sense::make(scsi::SenseKey::kDataProtect, 0x27, 0x00));
}

// Of the commands that may wait for the medium.
bool needs_medium(const scsi::CommandInfo& info) {
  return (info.flags & (scsi::kMediumRead | scsi::kMediumWrite)) != 0 ||
         info.operation == scsi::Operation::kSynchronizeCache;
}

// SAM-5 §5.3.1: BUSY, because the unit cannot accept more commands. Hosts repeat it later. The gate
// tells that the unit is stuck until the next poll. A unit that has continued since then completes
// many commands until that poll, and none of them may get BUSY.
bool exceeds_stuck_unit(const Unit& unit, const Command& command) {
  if (!needs_medium(*command.info) || !unit.still_stuck()) return false;
  const bool unit_full = !mutation_disables(Guard::kStuckLimit) &&
                         unit.statistics().requests().in_progress() >= limits::kMaxStuckRequests;
  return unit_full || !command.nexus->stuck_admission.admit();
}

}  // namespace

Verdict check_removed(const Unit& unit, const Command& command, Decision* decision) {
  if (!command.itl->removed && !(unit.gate() & Unit::kRemoved)) return Verdict::kProceed;
  // LOGICAL UNIT NOT SUPPORTED
  return decision->answer(scsi::Sense::make(scsi::SenseKey::kIllegalRequest, 0x25, 0x00));
}

Verdict take_attention(Unit& unit, Command& command, Decision* decision) {
  if (command.info && (command.info->flags & scsi::kIgnoresUnitAttention)) {
    return Verdict::kProceed;
  }
  if (!command.itl->attention.load(std::memory_order_acquire)) return Verdict::kProceed;
  UnitAttention ua;
  if (!unit.attached().pop(*command.itl, &ua)) return Verdict::kProceed;
  return decision->answer(attention_sense(ua));
}

Verdict check_protection(const Command& command, Decision* decision) {
  return command.itl->read_only ? admit_as_reader(command, decision) : Verdict::kProceed;
}

Verdict recheck_admission(Unit& unit, Command& command, Decision* decision) {
  if (const Verdict v = check_removed(unit, command, decision); v != Verdict::kProceed) return v;
  CommandContext& itl = *command.itl;
  const uint64_t word = refresh_rights(unit, itl, unit.gate_word());
  const uint64_t gate = word % Unit::kGateStep;
  const uint16_t flags = command.info->flags;
  if ((gate & Unit::kReserved) && !passes_reservations(unit, command)) {
    return decision->answer(scsi::Status::kReservationConflict);
  }
  if ((gate & ~uint64_t{Unit::kReserved}) == 0 && itl.rights.everything) itl.open_gate = word;
  if ((gate & Unit::kNotReady) && (flags & scsi::kNeedsReady)) {
    return decision->answer(not_ready_sense(unit));
  }
  if ((gate & Unit::kStuck) && exceeds_stuck_unit(unit, command)) {
    return decision->answer(scsi::Status::kBusy);
  }
  if (gate & Unit::kWriteProtected) {
    if (unit.backend().info().read_only) return admit_as_reader(command, decision);
    if ((flags & scsi::kMediumWrite) && !itl.read_only) {
      return decision->answer(write_protected_sense(unit));
    }
  }
  return check_protection(command, decision);
}

// SAM-5 §5.3.3 permits a unit attention before RESERVATION CONFLICT, and RESERVATION CONFLICT
// before every other CHECK CONDITION.
Verdict check_admission(Unit& unit, Command& command, Decision* decision) {
  if (const Verdict v = check_removed(unit, command, decision); v != Verdict::kProceed) return v;
  if (const Verdict v = take_attention(unit, command, decision); v != Verdict::kProceed) return v;
  return recheck_admission(unit, command, decision);
}

Verdict refuse_cdb(Unit& unit, const Command& command, const scsi::Sense& sense,
                   Decision* decision) {
  UnitAttention ua;
  if (command.itl->attention.load(std::memory_order_acquire) &&
      unit.attached().pop(*command.itl, &ua)) {
    return decision->answer(attention_sense(ua));
  }
  return decision->answer(sense);
}

}  // namespace sluice::lun
