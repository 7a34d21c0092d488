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
};

// Runs `done` on reactor `reply_to`, never inside the call, when all commands of `scope` are
// complete.
void abort_everywhere(Unit& unit, Reactors& reactors, unsigned reply_to, const AbortScope& scope,
                      std::function<void()> done);

}  // namespace sluice::lun
