// What follows from a change of reservations: the new state, unit attentions, aborted commands.
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

// With the unit's mutex held. `by` is told nothing. Takes the state out of the decision.
void take_effect_locked(Unit& unit, PrDecision& decision, const NexusId& by);

// The store said what the state is after an outcome was unknown. If it is what the doubt was about,
// that change happened: it has all its effects, though nobody is left to be answered. If it is
// something else again (another gateway's), everybody it may concern is told, and commands of
// those who lost their registrations are aborted. Nothing of it happens if the unit's epoch is not
// `epoch` any more. `done` runs on the context's reactor, when the last
// of them has let go of its blocks, and then only may anybody learn of the new state (DESIGN R9).
void take_in_settled(const std::shared_ptr<Unit>& unit, const ReactorContext& context,
                     uint64_t epoch, ReservationState found, std::function<void()> done);

}  // namespace sluice::lun
