// The effects of a change of reservations: the new state, unit attentions, aborted commands.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "commands/reservations/pr_decision.h"
#include "unit/unit.h"

namespace sluice::lun {

struct Reservations::Doubt {
  Doubt(PrDecision d, NexusId n) : decision(std::move(d)), by(std::move(n)) {}
  PrDecision decision;
  NexusId by;
};

// The caller holds the unit's mutex. `by` gets no unit attention. Moves the state out of the
// decision.
void take_effect_locked(Unit& unit, PrDecision& decision, const NexusId& by);

// The store has reported the state after an unknown outcome. If it is the state of the doubtful
// change, that change happened and has all its effects, although its command can't be answered any
// more. If it is another state (of another gateway), all nexuses that it may concern get unit
// attentions, and commands of nexuses that lost their registrations are aborted. Nothing happens if
// the unit's epoch is no longer `epoch`. `done` runs on the context's reactor after the last
// aborted command has released its blocks; only then may a host see the new state (DESIGN R9).
void take_in_settled(const std::shared_ptr<Unit>& unit, const ReactorContext& context,
                     uint64_t epoch, ReservationState found, std::function<void()> done);

}  // namespace sluice::lun
