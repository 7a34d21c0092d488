#include "nexus/pipeline.h"

#include <cassert>
#include <memory>

#include "base/limits.h"
#include "commands/gate.h"
#include "commands/handler.h"
#include "commands/run.h"
#include "nexus/command_routing.h"
#include "nexus/entry_check.h"
#include "nexus/forwarding.h"
#include "unit/unit_sense.h"

namespace sluice::lun {
namespace {

Stage end(Command& command, const Decision& decision) {
  finish(command, decision);
  return Stage::kRunning;
}

Stage wait_for_data(Command& command) {
  command.enter(Stage::kAwaitingData);
  return Stage::kAwaitingData;
}

// SAM-5 §5.3.1: TASK SET FULL, or BUSY without an owner, if too many commands of the unit wait.
Stage hold(Unit& unit, Command& command) {
  if (!unit.hold()) {
    const bool limited = (unit.gate() & Unit::kNotOwner) == 0;
    finish_status(command, limited ? scsi::Status::kTaskSetFull : scsi::Status::kBusy);
    return Stage::kRunning;
  }
  command.enter(Stage::kHeld);
  if (command.held_since < 0) command.held_since = *command.nexus->reactor_context().now;
  ++command.itl->held;
  ++command.nexus->held;
  return Stage::kHeld;
}

Stage block(Command& command) {
  command.enter(Stage::kBlocked);
  return Stage::kBlocked;
}

Stage forward(Command& command, Decision& decision) {
  if (check_protection(command, &decision) != Verdict::kProceed ||
      check_freshness(command, &decision) != Verdict::kProceed) {
    return end(command, decision);
  }
  const Itl& itl = itl_of(command);
  const std::shared_ptr<Link> link =
      itl.links().link_to(decision.owner().owner, itl.shared_nexus());
  if (!link) {
    finish_sense(command, inaccessible(Standing::kTransitioning));
    return Stage::kRunning;
  }
  command.link = link;  // a copy: the command may end within the call
  command.enter(Stage::kForwarded);
  command.data_out_wanted = command.data_out_size;
  link->start(command, decision.owner().epoch);
  return Stage::kForwarded;
}

bool wants_data(const Command& command) {
  return command.data_out_wanted != 0 && command.expected_data_out != 0;
}

bool blocked(const Command& command) {
  return command.itl->ordering != 0 && !itl_of(command).may_run(command);
}

// All checks passed: runs the command when its task set permits.
Stage order(Unit& unit, Command& command) {
  if (blocked(command)) [[unlikely]]
    return block(command);
  run(unit, command);
  return Stage::kRunning;
}

Command* first_held(const Itl& itl) {
  for (Command* c = itl.active_head; c; c = c->next_active) {
    if (c->stage == Stage::kHeld) return c;
  }
  return nullptr;
}

bool waited_too_long(const Command& command) {
  return *command.nexus->reactor_context().now - command.held_since >= limits::kHoldCommands;
}

}  // namespace

Stage advance(Unit& unit, Command& command) {
  Decision decision;
  const uint64_t word = unit.gate_word();
  const Stage from = command.stage;
  command.enter(Stage::kRunning);
  switch (from) {
    case Stage::kEntered:
      if (check_entry(unit, command, word, &decision) != Verdict::kProceed) [[unlikely]]
        return end(command, decision);
      if (wants_data(command)) return wait_for_data(command);
      if (queues_behind_held(unit, command)) [[unlikely]]
        return hold(unit, command);
      if ((word & Unit::kDetour) == 0) [[likely]]
        return order(unit, command);  // this gateway owns the unit, and nothing limits it
      break;
    case Stage::kAwaitingData:
      if (queues_behind_held(unit, command)) [[unlikely]]
        return hold(unit, command);
      break;
    default:
      assert(from == Stage::kHeld || from == Stage::kBlocked);
  }
  switch (route(unit, command, word, &decision)) {
    case Verdict::kAnswer:
      return end(command, decision);
    case Verdict::kWait:
      return hold(unit, command);
    case Verdict::kForward:
      return blocked(command) ? block(command) : forward(command, decision);
    case Verdict::kProceed:
      break;
  }
  return order(unit, command);
}

void run_blocked(Itl& itl) {
  // Commands may complete immediately and call this again; the outermost call continues.
  if (itl.releasing) return;
  itl.releasing = true;
  while (Command* command = itl.first_runnable()) {
    if (command->aborted()) {
      finish_aborted(*command);
    } else {
      advance(itl.unit(), *command);
    }
  }
  const auto drained = itl.take_drained();
  itl.releasing = false;
  for (const auto& done : drained) done();
}

void resume(Itl& itl) {
  // Commands that end here may cause new ones, which queue behind held ones or run by themselves.
  if (itl.resuming) return;
  const std::shared_ptr<Itl> alive = itl.shared_from_this();
  itl.resuming = true;
  while (Command* command = itl.held != 0 ? first_held(itl) : nullptr) {
    itl.leave_held();
    if (advance(itl.unit(), *command) == Stage::kHeld) break;
  }
  itl.resuming = false;
}

void end_overdue(Itl& itl) {
  if (itl.held == 0 || itl.unit().role().standing == Standing::kOwner) return;
  const std::shared_ptr<Itl> alive = itl.shared_from_this();
  while (Command* command = first_held(itl)) {
    if (!waited_too_long(*command)) return;
    finish_sense(*command, inaccessible(Standing::kTransitioning));
  }
}

void return_forwarded(Command& command) {
  command.link.reset();
  command.submitted = false;
  command.enter(Stage::kRunning);
  if (command.aborted()) return finish_aborted(command);
  if (command.held_since >= 0 && waited_too_long(command)) {
    return finish_sense(command, inaccessible(Standing::kTransitioning));
  }
  hold(command.itl->unit(), command);
}

}  // namespace sluice::lun
