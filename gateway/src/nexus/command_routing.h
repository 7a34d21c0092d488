// Decides where a command runs if this gateway may not own its unit or the unit is limited: here,
// at the owner, later, or not at all (DESIGN R1, R7, R11).
//
// A started command never moves: it completes here if it was started here (R5), or through the link
// that received it. A command that waits for data, for its turn in the task set or for an owner is
// not started yet, and is routed again when it continues.
#pragma once

#include "commands/command.h"
#include "commands/decision.h"
#include "commands/gate.h"
#include "nexus/itl.h"
#include "nexus/without_owner.h"
#include "unit/role.h"
#include "unit/unit.h"

namespace sluice::lun {

// Of a unit with bits of Unit::kDetour, and of a command that route() does not decide alone.
Verdict route_by_role(Unit& unit, Command& command, Decision* decision);

// kProceed: it runs here, and its CDB is checked for the unit's present state. kWait: it waits for
// an owner, for bandwidth, or for a reset (nexus/owner_resets.h).
inline Verdict route(Unit& unit, Command& command, uint64_t word, Decision* decision) {
  if ((word & Unit::kDetour) == 0 && command.prepared && command.epoch == 0 &&
      itl_of(command).resets == 0) [[likely]] {
    return admit_again(unit, command, word, decision);
  }
  return route_by_role(unit, command, decision);
}

// Whether the command waits behind commands of its task set that wait for an owner or bandwidth.
inline bool queues_behind_held(const Unit& unit, const Command& command) {
  if (command.itl->held == 0) [[likely]]
    return false;
  const Standing standing = unit.role().standing;
  return standing == Standing::kOwner || !answers_itself(command, standing);
}

}  // namespace sluice::lun
