// Serializes decisions about a unit's reservations: one command at a time, and only on a known
// state (DESIGN R3).
//
// Threads: reactors. A waiting command can be aborted at any time; its queue entry stays until its
// turn and is then skipped.
#pragma once

#include <functional>
#include <memory>

#include "commands/handler.h"
#include "commands/reservations/pr_decision.h"

namespace sluice::lun {

// Calls `go` when no other change of this unit is in progress and its state is known; `go` must
// lead to pass_turn(). Answers BUSY if too many commands wait or the store can't report the state:
// then nothing was committed for this command.
void take_turn(Unit& unit, Command& command, Handler go);
void pass_turn(Unit& unit);

// The outcome of committing `decision` is unknown. Asks the store for the state, applies it and
// passes the turn; other decisions wait until then. If the store can't answer, the next command in
// the queue asks again.
void hold_in_doubt(const std::shared_ptr<Unit>& unit, const ReactorContext& context,
                   PrDecision decision, const NexusId& by);

}  // namespace sluice::lun
