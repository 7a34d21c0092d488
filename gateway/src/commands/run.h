// Runs a command that nothing stops any more: its blocks are held, then its handler is called.
#pragma once

#include "commands/command.h"
#include "commands/handlers.h"
#include "unit/unit.h"

namespace sluice::lun {

// DESIGN R6: to be asked when a command has all it needs and the next thing is its request to a
// backend, here or elsewhere. false: it ended as stale; or, if an earlier part of it was submitted,
// by dropping its nexus.
bool is_fresh_slowly(Command& command);
inline bool is_fresh(Command& command) {
  return command.fresh_until == 0 || is_fresh_slowly(command);
}

// Holds command.hold, then calls `next`. An abort that comes while the command waits ends it.
void acquire_hold(Unit& unit, Command& command, Handler next);

inline void run(Unit& unit, Command& command) {
  command.stage = Command::Stage::kRunning;
  const Handler handle = operation(command.info->operation).handle;
  if (command.wants_hold) return acquire_hold(unit, command, handle);
  if (is_fresh(command)) handle(unit, command);
}

// Of a command that was marked aborted and is still at work. It keeps its blocks (DESIGN R5),
// except under a safety mutation.
void stay_in_range(Command& command);

// The command was forwarded to this gateway, which is not the owner of its epoch.
void finish_not_owner(Command& command);

}  // namespace sluice::lun
