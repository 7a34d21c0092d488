// The way of a command from its nexus to its handler. Every command takes it, through advance():
//
//   stage             checks, in this order                          waits for, continued by
//   kEntered          check_entry: CDB, gate, required data
//   kAwaitingData                                                    its data-out,
//   Nexus::data_ready kHeld             route: role, gate again, bandwidth             an owner or
//   bandwidth, resume kBlocked          Itl::may_run: task attributes (SAM-5 §8.7)     other
//   commands, run_blocked kWaitingForRange  range lock, gate again, freshness (run.h) overlapping
//   ranges kRunning          -                                              the handler kForwarded
//   write protection, freshness                    Link, the owner's answer kDone
//
// A command that waits is continued by advance(), which repeats the checks of its stage, because
// the unit may have changed meanwhile. A held or blocked command is routed again.
//
// A command is routed before its task set may block it. So all commands that an unserved unit
// holds end together, limits::kHoldCommands after they arrived, whatever their task attributes.
//
// Threads: the nexus's reactor.
#pragma once

#include "commands/command.h"
#include "nexus/itl.h"
#include "unit/unit.h"

namespace sluice::lun {

// Takes the command as far as possible from its stage: kEntered, or one in which it waited and what
// it waited for has come. Returns the stage in which it waits now; kRunning: a handler has it, or
// it has ended and may be gone.
Stage advance(Unit& unit, Command& command);

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
