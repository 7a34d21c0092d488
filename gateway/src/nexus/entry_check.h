// The checks of a command that entered its task set, before its data is requested: CDB, gate,
// required data. They are inline, because every command passes them.
#pragma once

#include "commands/command.h"
#include "commands/decision.h"
#include "commands/gate.h"
#include "commands/handlers.h"
#include "unit/role.h"
#include "unit/unit.h"

namespace sluice::lun {

// Calls the function that prepares the operation: range, required data, blocks to hold. `sense`:
// NO SENSE, for its use.
inline Verdict prepare_operation(Unit& unit, Command& command, scsi::Sense& sense,
                                 Decision* decision) {
  if (operation(command.info->operation).prepare(unit, command, &sense)) [[likely]] {
    command.prepared = true;
    return Verdict::kProceed;
  }
  if (sense.key == scsi::SenseKey::kNoSense) return decision->answer(scsi::Status::kGood);
  return decision->answer(sense);
}

// Of a unit that this gateway owns. `word`: Unit::gate_word(), loaded after the command entered the
// task set.
inline Verdict check_as_owner(Unit& unit, Command& command, uint64_t word, Decision* decision) {
  if (command.epoch != 0 && command.epoch != unit.epoch()) [[unlikely]]
    return decision->end(Outcome::kNotOwner);
  scsi::Sense sense;
  command.info = scsi::find_command(command.full_cdb(), unit.support(), &sense);
  if (!command.info || !attribute_known(command, &sense)) [[unlikely]]
    return refuse_cdb(unit, command, sense, decision);
  if (const Verdict v = admit(unit, command, word, decision); v != Verdict::kProceed) return v;
  return prepare_operation(unit, command, sense, decision);
}

// Of a unit with bits of Unit::kDetour. A gateway that does not own the unit checks only what every
// owner answers alike.
Verdict check_by_role(Unit& unit, Command& command, uint64_t word, Decision* decision);

// Sets command.data_out_wanted, and what the handler needs if this gateway owns the unit.
inline Verdict check_entry(Unit& unit, Command& command, uint64_t word, Decision* decision) {
  if ((word & Unit::kDetour) == 0) [[likely]]
    return check_as_owner(unit, command, word, decision);
  return check_by_role(unit, command, word, decision);
}

}  // namespace sluice::lun
