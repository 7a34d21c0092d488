#include "lun/execution.h"

#include "base/canary.h"
#include "lun/commands/handler.h"
#include "lun/commands/handlers.h"
#include "lun/forwarding.h"
#include "lun/gate.h"
#include "lun/placing.h"
#include "lun/ranges/range_table.h"
#include "lun/task_set.h"

namespace sluice::lun {
namespace {

// Before a handler that may write: tokens for these blocks end (change_watch.h).
void warn_of_change(Unit& unit, const Command& command) {
  if (!command.hold.exclusive) return;
  unit.changes().changing(command.hold.first, command.hold.last, *command.nexus->lane().now);
}

// A hold that had to wait was granted. What the gate knows may have changed meanwhile.
void on_grant(RangeHold& hold) {
  Command& command = *static_cast<Command*>(hold.context);
  command.stage = Command::Stage::kRunning;
  Unit& unit = command.itl->unit();
  if (command.aborted) return finish_aborted(command);
  const uint64_t word = unit.gate_word();
  if ((word & (Unit::kElsewhere | Unit::kDraining)) == Unit::kElsewhere) [[unlikely]] {
    // Fenced. A forwarder asks the next owner, since nothing of it was submitted.
    if (command.epoch != 0 && !command.submitted) return finish_not_owner(command);
    command.aborted = true;  // its nexus is about to be dropped (DESIGN R4)
    return finish_aborted(command);
  }
  if (!still_passes(unit, command, word) || !is_fresh(command)) return;
  warn_of_change(unit, command);
  command.after_hold(unit, command);
}

void acquire(Unit& unit, Command& command, Handler next) {
  const Lane& lane = command.nexus->lane();
  command.hold.on_grant = on_grant;
  command.hold.context = &command;
  command.after_hold = next;
  if (!unit.ranges().acquire(lane.reactor, command.hold, lane.reactors)) {
    command.stage = Command::Stage::kWaitingForRange;
    return;
  }
  if (!is_fresh(command)) return;
  warn_of_change(unit, command);
  next(unit, command);
}

void run(Unit& unit, Command& command) {
  command.stage = Command::Stage::kRunning;
  const Handler handle = operation(command.info->operation).handle;
  if (command.wants_hold) return acquire(unit, command, handle);
  if (is_fresh(command)) handle(unit, command);
}

}  // namespace

bool attribute_known(const Command& command, scsi::Sense* sense) {
  if (command.attribute < TaskAttribute::kAca) [[likely]]
    return true;
  // INVALID MESSAGE ERROR
  *sense = scsi::Sense::make(scsi::SenseKey::kIllegalRequest, 0x49, 0x00);
  return false;
}

bool look_at(Unit& unit, Command& command, uint64_t word) {
  if (command.epoch != 0 && command.epoch != unit.epoch()) [[unlikely]] {
    finish_not_owner(command);
    return false;
  }
  scsi::Sense sense;
  command.info = scsi::find_command(command.full_cdb(), unit.support(), &sense);
  if (!command.info || !attribute_known(command, &sense)) [[unlikely]] {
    refuse_cdb(unit, command, sense);
    return false;
  }
  if (!passes_gate(unit, command, word)) return false;
  if (!operation(command.info->operation).prepare(unit, command, &sense)) {
    if (sense.key == scsi::SenseKey::kNoSense) {
      finish_good(command);
    } else {
      finish_sense(command, sense);
    }
    return false;
  }
  command.prepared = true;
  return true;
}

bool is_fresh_slowly(Command& command) {
  const Lane& lane = command.nexus->lane();
  if (!lane.clock || lane.clock() <= command.fresh_until) {
    command.submitted = true;
    return true;
  }
  (command.submitted ? command.drops_nexus : command.stale) = true;
  finish_status(command, scsi::Status::kBusy);
  return false;
}

void dispatch(Unit& unit, Command& command) {
  if (command.itl->ordering != 0 && !may_run(*command.itl, command)) [[unlikely]] {
    command.stage = Command::Stage::kBlocked;
    return;
  }
  run(unit, command);
}

void run_unblocked(Command& command) {
  Unit& unit = command.itl->unit();
  command.stage = Command::Stage::kRunning;
  if (command.aborted) return finish_aborted(command);
  const uint64_t word = unit.gate_word();
  if ((word & Unit::kElsewhere) || !command.prepared || command.epoch != 0) [[unlikely]]
    return place(unit, command);
  if (still_passes(unit, command, word)) run(unit, command);
}

void hold_range(Unit& unit, Command& command, uint64_t lba, uint64_t blocks, bool exclusive,
                Handler next) {
  const Lane& lane = command.nexus->lane();
  if (command.hold.state != RangeHold::State::kIdle) {
    unit.ranges().cancel(lane.reactor, command.hold, lane.reactors);
  }
  if (command.aborted) return finish_aborted(command);
  if (blocks == 0) return next(unit, command);
  command.hold.first = lba;
  command.hold.last = lba + blocks - 1;
  command.hold.exclusive = exclusive;
  acquire(unit, command, next);
}

void abort_command(Command& command, bool task_aborted_status) {
  if (command.stage == Command::Stage::kIdle || command.aborted) return;
  command.aborted = true;
  command.task_aborted_status = task_aborted_status;
  switch (command.stage) {
    case Command::Stage::kForwarded: {
      command.stage = Command::Stage::kForwardedAborted;
      const std::shared_ptr<Link> link = command.link;  // the command may be over inside
      return link->abort(command);
    }
    case Command::Stage::kRunning:
      return stay_in_range(command);
    default:
      return finish_aborted(command);
  }
}

void stay_in_range(Command& command) {
  if (!lacks(Guard::kRange) || command.hold.state == RangeHold::State::kIdle) return;
  const Lane& lane = command.nexus->lane();
  command.itl->unit().ranges().cancel(lane.reactor, command.hold, lane.reactors);
}

void finish_aborted(Command& command) { finish_good(command); }

}  // namespace sluice::lun
