// Decides where a command runs if this gateway may not own its unit or the unit is limited: here,
// at the owner, later, or not at all (DESIGN R1, R7, R11). Only commands of units with
// Unit::kDetour bits come here.
//
//   begin_by_detour -> [its data] -> place -+-> dispatch    owner, and bandwidth left
//                                           +-> Link::start forwarder
//                                           +-> held        transition, or no bandwidth left, or
//                                           |               behind a reset (nexus/owner_resets.h)
//                                           +-> sense data  unavailable
//
// A started command never moves: it completes here if it was started here (R5), or through the link
// that received it. A command that waits for data, for its turn in the task set or for an owner is
// not started yet, and checks the unit's role again when it continues.
#pragma once

#include "commands/command.h"
#include "nexus/itl.h"
#include "unit/unit.h"

namespace sluice::lun {

// The part of Nexus::begin() after the command entered the task set. True: it waits for data.
bool begin_by_detour(Unit& unit, Command& command);

// All its data has arrived.
void place(Unit& unit, Command& command);

// The unit's role changed, or time passed: continues held commands in order, as far as possible.
void resume(Itl& itl);

// Ends commands that have waited too long for an owner.
void end_overdue(Itl& itl);

// A command left a watched task set: runs the commands that it blocked, and calls drains. The
// caller keeps `itl` alive.
void run_blocked(Itl& itl);

// Handles a forwarded command that the owner refused, no part of which was or will be submitted: it
// waits for the next owner, and ends with 02/04/0A after limits::kHoldCommands.
void return_forwarded(Command& command);

}  // namespace sluice::lun
