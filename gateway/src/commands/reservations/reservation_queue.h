// Serializes decisions about a unit's reservations: one command at a time, and only on a known
// state (DESIGN R3).
//
// Threads: reactors. A waiting command can be aborted at any time; its queue entry stays until it
// is the first and is then skipped.
#pragma once

#include <functional>
#include <memory>

#include "commands/handler.h"
#include "commands/reservations/pr_decision.h"

namespace sluice::lun {

// Calls `go` when no other change of this unit is in progress and its state is known; `go` must
// lead to begin_next_change(). Answers BUSY if too many commands wait or the store can't report the
// state: then nothing was committed for this command.
void queue_change(Unit& unit, Command& command, Handler go);
void begin_next_change(Unit& unit);

// The outcome of committing `decision` is unknown. Asks the store for the state, applies it and
// begins the next change; other decisions wait until then. If the store can't answer, the next
// command in the queue asks again.
void hold_in_doubt(const std::shared_ptr<Unit>& unit, const ReactorContext& context,
                   PrDecision decision, const NexusId& by);

}  // namespace sluice::lun
