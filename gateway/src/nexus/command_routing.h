// Where a command goes whose unit isn't plainly ours: it runs here, goes to the owner, waits, or
// ends (DESIGN R1, R7, R11). The way round of Unit::kDetour; the direct way never comes here.
//
//   begin_by_detour -> [its data] -> place -+-> dispatch    owner, and bandwidth left
//                                           +-> Link::start forwarder
//                                           +-> held        transition, or no bandwidth left, or
//                                           |               behind a reset (nexus/owner_resets.h)
//                                           +-> sense data  unavailable
//
// A command that was started never changes its place: what was started here completes here (R5),
// what a link was given ends by the link. One that waits for data, its turn in the task set or an
// owner was not started, and looks at the unit's role again when it goes on.
#pragma once

#include "commands/command.h"
#include "nexus/itl.h"
#include "unit/unit.h"

namespace sluice::lun {

// Nexus::begin() from where the command is in the task set. true: it waits for data.
bool begin_by_detour(Unit& unit, Command& command);

// Its data is all there.
void place(Unit& unit, Command& command);

// The unit's role changed, or time passed: held commands go on, in order, as far as they may.
void resume(Itl& itl);

// Ends the commands that have waited too long for an owner.
void end_overdue(Itl& itl);

// A watched task set lost a command: runs the commands that it blocked, calls drains. The caller
// keeps `itl` alive.
void run_blocked(Itl& itl);

// Ends a forwarded command where the owner refused it and nothing of it was or will be submitted:
// it waits for the next owner, and ends with 02/04/0A when that takes too long.
void return_forwarded(Command& command);

}  // namespace sluice::lun
