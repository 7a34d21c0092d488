#include "commands/gate.h"

#include <mutex>

#include "commands/handler.h"
#include "scsi/pr_out_list.h"
#include "unit/reservations/reservations.h"
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

bool passes_reservations(Unit& unit, Command& command) {
  bool allowed = command.itl->rights.allow(scsi::flags_of(*command.info, command.full_cdb()));
  if (!command.itl->rights.everything && concerns_reservations(command.info->operation)) {
    const std::lock_guard lock(unit.mutex());
    allowed = unit.reservations().allows(command.nexus->id(), *command.info);
  }
  if (!allowed) finish_status(command, scsi::Status::kReservationConflict);
  return allowed;
}

}  // namespace

bool passes_removed(const Unit& unit, Command& command) {
  if (!command.itl->removed && !(unit.gate() & Unit::kRemoved)) return true;
  finish_sense(command, scsi::Sense::make(scsi::SenseKey::kIllegalRequest, 0x25, 0x00));
  return false;
}

bool passes_attention(Unit& unit, Command& command) {
  if (command.info && (command.info->flags & scsi::kIgnoresUnitAttention)) return true;
  if (!command.itl->attention.load(std::memory_order_acquire)) return true;
  UnitAttention ua;
  if (!unit.attached().pop(*command.itl, &ua)) return true;
  finish_sense(command, attention_sense(ua));
  return false;
}

namespace {

// Applies to an I_T_L nexus that is read-only, and to a unit whose backend is read-only.
bool passes_as_reader(Command& command) {
  if (command.info && !changes_unit(command)) return true;
  // INVALID COMMAND OPERATION CODE: an unknown command may change the unit.
  finish_sense(command, command.info
                            ? scsi::Sense::make(scsi::SenseKey::kDataProtect, 0x27, 0x00)
                            : scsi::Sense::make(scsi::SenseKey::kIllegalRequest, 0x20, 0x00));
  return false;
}

}  // namespace

bool passes_protection(Command& command) {
  return !command.itl->read_only || passes_as_reader(command);
}

bool recheck_admission(Unit& unit, Command& command) {
  if (!passes_removed(unit, command)) return false;
  CommandContext& itl = *command.itl;
  const uint64_t word = refresh_rights(unit, itl, unit.gate_word());
  const uint64_t gate = word % Unit::kGateStep;
  const uint16_t flags = command.info->flags;
  if ((gate & Unit::kReserved) && !passes_reservations(unit, command)) return false;
  if ((gate & ~uint64_t{Unit::kReserved}) == 0 && itl.rights.everything) itl.open_gate = word;
  if ((gate & Unit::kNotReady) && (flags & scsi::kNeedsReady)) {
    finish_sense(command, not_ready_sense(unit));
    return false;
  }
  if (gate & Unit::kWriteProtected) {
    if (unit.backend().info().read_only) return passes_as_reader(command);
    if ((flags & scsi::kMediumWrite) && !itl.read_only) {
      finish_sense(command, write_protected_sense(unit));
      return false;
    }
  }
  return passes_protection(command);
}

// SAM-5 §5.3.3 permits a unit attention before RESERVATION CONFLICT, and RESERVATION CONFLICT
// before every other CHECK CONDITION.
bool check_admission(Unit& unit, Command& command) {
  if (!passes_removed(unit, command)) return false;
  if (!passes_attention(unit, command)) return false;
  return recheck_admission(unit, command);
}

void refuse_cdb(Unit& unit, Command& command, const scsi::Sense& sense) {
  UnitAttention ua;
  if (command.itl->attention.load(std::memory_order_acquire) &&
      unit.attached().pop(*command.itl, &ua)) {
    return finish_sense(command, attention_sense(ua));
  }
  finish_sense(command, sense);
}

}  // namespace sluice::lun
