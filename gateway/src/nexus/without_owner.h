// Commands that a gateway answers itself although it does not own their unit: what every gateway
// answers alike, and what asks for the state of this gateway's own port.
#pragma once

#include "commands/command.h"
#include "commands/decision.h"
#include "unit/role.h"
#include "unit/unit.h"

namespace sluice::lun {

// Whether this gateway answers. `standing` is not kOwner.
bool answers_itself(const Command& command, Standing standing);

// Checks such a command. No reservation restricts it.
Verdict check_without_owner(Unit& unit, Command& command, Standing standing, Decision* decision);

}  // namespace sluice::lun
