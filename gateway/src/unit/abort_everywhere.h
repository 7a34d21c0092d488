// Aborts the commands of many nexuses of one unit, which live on many reactors.
#pragma once

#include <functional>

#include "base/reactors.h"
#include "unit/nexus_id.h"

namespace sluice::lun {

struct Command;
class Unit;

// Which commands abort_everywhere() aborts.
struct AbortScope {
  // Their commands end with TASK ABORTED status (TAS=1), except those of the I_T nexus `by`: these
  // end without a status, and only if `include_own`. The address counts, not the value.
  const NexusId* by = nullptr;
  bool include_own = false;
  // The nexuses that are affected; empty: all.
  std::function<bool(const NexusId&)> which = {};
  // Spared, and not waited for: the command that asks (PREEMPT AND ABORT of its own registration).
  const Command* except = nullptr;
  // Whether `done` waits until the backend has completed every command. Otherwise it does not wait
  // for detached commands (Command::detached), which hold their blocks. Not with `except`.
  bool until_released = true;
};

// Runs `done` on reactor `reply_to`, never inside the call, when all commands of `scope` are
// complete, or detached if the scope says so.
void abort_everywhere(Unit& unit, Reactors& reactors, unsigned reply_to, const AbortScope& scope,
                      std::function<void()> done);

}  // namespace sluice::lun
