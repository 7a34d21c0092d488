// Runs a command that passed all checks: holds its blocks, then calls its handler.
#pragma once

#include "commands/command.h"
#include "commands/decision.h"
#include "commands/handlers.h"
#include "unit/unit.h"

namespace sluice::lun {

// DESIGN R6: the check just before a command's request to a backend, here or on another gateway. It
// marks a command that passes as submitted. The command ends as stale; or, if an earlier part of it
// was submitted, with an unknown outcome.
Verdict check_freshness_by_clock(Command& command, Decision* decision);
inline Verdict check_freshness(Command& command, Decision* decision) {
  return command.fresh_until == 0 ? Verdict::kProceed : check_freshness_by_clock(command, decision);
}

// Holds command.hold, checks the freshness, then calls `next`. A command that waited for its range
// is checked again before. An abort during the wait ends the command.
void acquire_hold(Unit& unit, Command& command, Handler next);

inline void run(Unit& unit, Command& command) {
  const Handler handle = operation(command.info->operation).handle;
  if (command.wants_hold) return acquire_hold(unit, command, handle);
  Decision decision;
  if (check_freshness(command, &decision) != Verdict::kProceed) [[unlikely]]
    return finish(command, decision);
  handle(unit, command);
}

// A command that was marked aborted is still executing. It keeps its blocks (DESIGN R5), except
// under a safety mutation.
void stay_in_range(Command& command);

}  // namespace sluice::lun
