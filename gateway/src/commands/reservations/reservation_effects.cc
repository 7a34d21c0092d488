#include "commands/reservations/reservation_effects.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "unit/abort_everywhere.h"
#include "unit/ranges/range_table.h"

namespace sluice::lun {
namespace {

void raise_attentions_locked(Unit& unit, const PrDecision& decision, const NexusId& by) {
  for (const UnitAttention what :
       {kReservationsPreempted, kRegistrationsPreempted, kReservationsReleased}) {
    std::vector<Registration> whom;
    for (const PrDecision::Attention& a : decision.attentions) {
      if (a.what == what) whom.push_back(a.who);
    }
    if (!whom.empty()) unit.attached().raise_for_locked(whom, by, what);
  }
}

// The effects of an unknown change between the two states. It may notify too many nexuses (DESIGN
// R10).
PrDecision difference(const ReservationState& old, ReservationState found) {
  PrDecision decision;
  const bool moved = old.type != found.type || old.holder != found.holder;
  for (const Registration& r : old.registrations) {
    if (std::find(found.registrations.begin(), found.registrations.end(), r) ==
        found.registrations.end()) {
      decision.attentions.push_back({r, kRegistrationsPreempted});
      decision.aborts.push_back(r);
    } else if (moved) {
      decision.attentions.push_back({r, kReservationsPreempted});
    }
  }
  decision.changed = true;
  decision.state = std::move(found);
  return decision;
}

// Waits for all writers in the unit: third-party copies that a preempted nexus sent to other units
// may be writing here.
struct WriterBarrier {
  RangeHold hold;
  std::shared_ptr<Unit> unit;
  ReactorContext context;
  std::function<void()> done;

  static void begin(const std::shared_ptr<Unit>& unit, const ReactorContext& context,
                    std::function<void()> done) {
    auto* barrier = new WriterBarrier{{}, unit, context, std::move(done)};
    barrier->hold.first = 0;
    barrier->hold.last = unit->blocks() - 1;
    barrier->hold.context = barrier;
    barrier->hold.on_grant = [](RangeHold& hold) {
      end(static_cast<WriterBarrier*>(hold.context));
    };
    if (unit->ranges().acquire(context.reactor, barrier->hold, context.reactors)) end(barrier);
  }
  static void end(WriterBarrier* ended) {
    const std::unique_ptr<WriterBarrier> barrier(ended);
    barrier->unit->ranges().release(barrier->context.reactor, barrier->hold,
                                    barrier->context.reactors);
    barrier->done();
  }
};

}  // namespace

void take_effect_locked(Unit& unit, PrDecision& decision, const NexusId& by) {
  unit.reservations().replace(std::move(decision.state));
  unit.reservations_changed();
  raise_attentions_locked(unit, decision, by);
}

void take_in_settled(const std::shared_ptr<Unit>& unit, const ReactorContext& context,
                     uint64_t epoch, ReservationState found, std::function<void()> done) {
  std::vector<Registration> aborts;
  NexusId by;
  {
    const std::lock_guard lock(unit->mutex());
    Reservations& reservations = unit->reservations();
    // If the unit was opened again since the question, serve() has loaded the state.
    const bool ours = unit->epoch() == epoch;
    const std::shared_ptr<const Reservations::Doubt> doubt = reservations.doubt();
    if (ours) reservations.set_doubt(nullptr);
    if (ours && found != reservations.state()) {
      PrDecision decision;
      if (doubt && found == doubt->decision.state) {
        decision = doubt->decision;
        by = doubt->by;
      } else {
        decision = difference(reservations.state(), std::move(found));
      }
      aborts = decision.aborts;
      take_effect_locked(*unit, decision, by);
    }
  }
  if (aborts.empty()) return done();
  abort_everywhere(
      *unit, *context.reactors, context.reactor, {.which = covered_by(std::move(aborts), by)},
      [unit, context, done = std::move(done)] { WriterBarrier::begin(unit, context, done); });
}

}  // namespace sluice::lun
