#include "commands/run.h"

#include "base/safety_mutation.h"
#include "commands/gate.h"
#include "unit/ranges/range_table.h"

namespace sluice::lun {
namespace {

// Before a handler that may write: revokes tokens for these blocks (change_watch.h).
void warn_of_change(Unit& unit, const Command& command) {
  if (!command.hold.exclusive) return;
  unit.changes().changing(command.hold.first, command.hold.last,
                          *command.nexus->reactor_context().now);
}

// Fenced while it waited. A forwarder asks the next owner, because no part was submitted. An
// initiator's nexus is about to be dropped (DESIGN R4).
void end_fenced(Command& command) {
  if (command.epoch != 0 && !command.submitted) {
    Decision decision;
    decision.end(Outcome::kNotOwner);
    return finish(command, decision);
  }
  command.abort = Abort::kSilent;
  finish_aborted(command);
}

// A hold that had to wait was granted. The gate may have changed meanwhile.
void on_grant(RangeHold& hold) {
  Command& command = *static_cast<Command*>(hold.context);
  command.enter(Stage::kRunning);
  Unit& unit = command.itl->unit();
  if (command.aborted()) return finish_aborted(command);
  const uint64_t word = unit.gate_word();
  if ((word & (Unit::kNotOwner | Unit::kDraining)) == Unit::kNotOwner) [[unlikely]]
    return end_fenced(command);
  Decision decision;
  if (admit_again(unit, command, word, &decision) != Verdict::kProceed ||
      check_freshness(command, &decision) != Verdict::kProceed) {
    return finish(command, decision);
  }
  warn_of_change(unit, command);
  command.after_hold(unit, command);
}

}  // namespace

void acquire_hold(Unit& unit, Command& command, Handler next) {
  const ReactorContext& context = command.nexus->reactor_context();
  command.hold.on_grant = on_grant;
  command.hold.context = &command;
  command.after_hold = next;
  if (!unit.ranges().acquire(context.reactor, command.hold, context.reactors)) {
    command.enter(Stage::kWaitingForRange);
    return;
  }
  Decision decision;
  if (check_freshness(command, &decision) != Verdict::kProceed) [[unlikely]]
    return finish(command, decision);
  warn_of_change(unit, command);
  next(unit, command);
}

void hold_range(Unit& unit, Command& command, uint64_t lba, uint64_t blocks, bool exclusive,
                Handler next) {
  const ReactorContext& context = command.nexus->reactor_context();
  if (command.hold.state != RangeHold::State::kIdle) {
    unit.ranges().cancel(context.reactor, command.hold, context.reactors);
  }
  if (command.aborted()) return finish_aborted(command);
  if (blocks == 0) return next(unit, command);
  command.hold.first = lba;
  command.hold.last = lba + blocks - 1;
  command.hold.exclusive = exclusive;
  acquire_hold(unit, command, next);
}

Verdict check_freshness_by_clock(Command& command, Decision* decision) {
  const ReactorContext& context = command.nexus->reactor_context();
  if (context.clock && context.clock() > command.fresh_until) {
    return decision->end(command.submitted ? Outcome::kUnknown : Outcome::kStale);
  }
  command.submitted = true;
  return Verdict::kProceed;
}

void stay_in_range(Command& command) {
  if (!mutation_disables(Guard::kRange) || command.hold.state == RangeHold::State::kIdle) return;
  const ReactorContext& context = command.nexus->reactor_context();
  command.itl->unit().ranges().cancel(context.reactor, command.hold, context.reactors);
}

}  // namespace sluice::lun
