// Runs a command that passed all checks: holds its blocks, then calls its handler.
#pragma once

#include "commands/command.h"
#include "commands/handlers.h"
#include "unit/unit.h"

namespace sluice::lun {

// DESIGN R6: call it when the next step of a command is its request to a backend, here or on
// another gateway. False: the command ended as stale; or, if an earlier part of it was submitted,
// its nexus was dropped.
bool is_fresh_slowly(Command& command);
inline bool is_fresh(Command& command) {
  return command.fresh_until == 0 || is_fresh_slowly(command);
}

// Holds command.hold, then calls `next`. An abort during the wait ends the command.
void acquire_hold(Unit& unit, Command& command, Handler next);

inline void run(Unit& unit, Command& command) {
  command.stage = Command::Stage::kRunning;
  const Handler handle = operation(command.info->operation).handle;
  if (command.wants_hold) return acquire_hold(unit, command, handle);
  if (is_fresh(command)) handle(unit, command);
}

// A command that was marked aborted is still executing. It keeps its blocks (DESIGN R5), except
// under a safety mutation.
void stay_in_range(Command& command);

// The command was forwarded to this gateway, but it is not the owner of the command's epoch.
void finish_not_owner(Command& command);

}  // namespace sluice::lun
