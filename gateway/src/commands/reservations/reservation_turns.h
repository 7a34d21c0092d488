// Who may decide about a unit's reservations: one command at a time, and only on a state that is
// certain (DESIGN R3).
//
// Threads: reactors. A command that waits for its turn can be aborted at once; its place in the
// line stays until its turn comes, which then passes on.
#pragma once

#include <functional>
#include <memory>

#include "commands/handler.h"
#include "commands/reservations/pr_decision.h"

namespace sluice::lun {

// Calls `go` once no other change of this unit is under way and its state is certain; it must lead
// to pass_turn(). BUSY instead, where too many wait or the store can't say what the state is:
// nothing was committed for this command.
void take_turn(Unit& unit, Command& command, Handler go);
void pass_turn(Unit& unit);

// The turn's holder learnt that the outcome of committing `decision` is unknown. Asks the store
// what became of it, takes that in and passes the turn; commands that decide wait until then. If
// the store can't say, the next in turn asks again.
void hold_in_doubt(const std::shared_ptr<Unit>& unit, const ReactorContext& context,
                   PrDecision decision, const NexusId& by);

}  // namespace sluice::lun
