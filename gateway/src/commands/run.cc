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

// A hold that had to wait was granted. The gate may have changed meanwhile.
void on_grant(RangeHold& hold) {
  Command& command = *static_cast<Command*>(hold.context);
  command.stage = Command::Stage::kRunning;
  Unit& unit = command.itl->unit();
  if (command.aborted) return finish_aborted(command);
  const uint64_t word = unit.gate_word();
  if ((word & (Unit::kNotOwner | Unit::kDraining)) == Unit::kNotOwner) [[unlikely]] {
    // Fenced. A forwarder asks the next owner, because no part of the command was submitted.
    if (command.epoch != 0 && !command.submitted) return finish_not_owner(command);
    command.aborted = true;  // its nexus is about to be dropped (DESIGN R4)
    return finish_aborted(command);
  }
  if (!is_still_admitted(unit, command, word) || !is_fresh(command)) return;
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
    command.stage = Command::Stage::kWaitingForRange;
    return;
  }
  if (!is_fresh(command)) return;
  warn_of_change(unit, command);
  next(unit, command);
}

void hold_range(Unit& unit, Command& command, uint64_t lba, uint64_t blocks, bool exclusive,
                Handler next) {
  const ReactorContext& context = command.nexus->reactor_context();
  if (command.hold.state != RangeHold::State::kIdle) {
    unit.ranges().cancel(context.reactor, command.hold, context.reactors);
  }
  if (command.aborted) return finish_aborted(command);
  if (blocks == 0) return next(unit, command);
  command.hold.first = lba;
  command.hold.last = lba + blocks - 1;
  command.hold.exclusive = exclusive;
  acquire_hold(unit, command, next);
}

bool is_fresh_slowly(Command& command) {
  const ReactorContext& context = command.nexus->reactor_context();
  if (!context.clock || context.clock() <= command.fresh_until) {
    command.submitted = true;
    return true;
  }
  (command.submitted ? command.drops_nexus : command.stale) = true;
  finish_status(command, scsi::Status::kBusy);
  return false;
}

void stay_in_range(Command& command) {
  if (!mutation_disables(Guard::kRange) || command.hold.state == RangeHold::State::kIdle) return;
  const ReactorContext& context = command.nexus->reactor_context();
  command.itl->unit().ranges().cancel(context.reactor, command.hold, context.reactors);
}

void finish_not_owner(Command& command) {
  command.not_owner = true;
  command.itl->unit().tell_epoch(command.epoch);
  finish_status(command, scsi::Status::kBusy);
}

}  // namespace sluice::lun
