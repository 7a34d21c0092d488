#include "nexus/itl.h"

#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "base/safety_mutation.h"
#include "commands/handler.h"
#include "commands/run.h"
#include "nexus/forwarding.h"
#include "unit/ranges/range_table.h"
#include "unit/unit.h"

namespace sluice::lun {
namespace {

// Whether it may have reached the backend, or will without another check of the unit's role.
bool started(const Command& command) {
  return command.stage == Stage::kWaitingForRange || command.stage == Stage::kWaitingForChange ||
         command.stage == Stage::kRunning;
}

// Whether it only waits for the task set, a range, a change or data: nothing was submitted.
bool ends_at_once(const Command& command) {
  return command.stage == Stage::kAwaitingData || command.stage == Stage::kHeld ||
         command.stage == Stage::kBlocked || command.stage == Stage::kWaitingForRange ||
         command.stage == Stage::kWaitingForChange;
}

// Whether the order of its effects does not depend on anyone who waits for it: they are on blocks
// that it holds, or an aborted command has none. PERSISTENT RESERVE OUT and MODE SELECT change the
// unit itself when the store or the backend has completed them.
bool may_be_detached(const Command& command) {
  return command.info != nullptr &&
         command.info->operation != scsi::Operation::kPersistentReserveOut &&
         command.info->operation != scsi::Operation::kModeSelect;
}

void mark_aborted(Command& command, bool task_aborted_status) {
  command.abort = task_aborted_status ? Abort::kWithStatus : Abort::kSilent;
  command.aborted_at = *command.nexus->reactor_context().now;
}

// Another nexus aborted it before. Its own one does not wait for TASK ABORTED any more.
void end_silently(Command& command) {
  command.abort = Abort::kSilent;
  if (command.detached && command.on_detached) command.on_detached(command);
}

}  // namespace

Itl::Itl(std::shared_ptr<Unit> unit, std::shared_ptr<Nexus> nexus, NexusContext& context,
         OwnerLinks& links, uint64_t lun)
    : CommandContext(std::move(unit), context, lun), nexus_(std::move(nexus)), links_(links) {}

bool Itl::head_of_queue_active() const {
  for (const Command* c = active_head; c; c = c->next_active) {
    if (c->attribute == TaskAttribute::kHeadOfQueue) return true;
  }
  return false;
}

// SAM-5 §8.7: HEAD OF QUEUE runs immediately; ORDERED waits for all older commands, SIMPLE for
// older ORDERED ones, and both for every HEAD OF QUEUE.
bool Itl::may_run(const Command& command) const {
  if (command.attribute == TaskAttribute::kHeadOfQueue) return true;
  if (head_of_queue_active()) return false;
  if (command.attribute == TaskAttribute::kOrdered) return &command == active_head;
  for (const Command* c = command.previous_active; c; c = c->previous_active) {
    if (c->attribute == TaskAttribute::kOrdered) return false;
  }
  return true;
}

Command* Itl::first_runnable() const {
  if (head_of_queue_active()) return nullptr;
  for (Command* c = active_head; c; c = c->next_active) {
    const bool blocked = c->stage == Stage::kBlocked;
    if (c->attribute == TaskAttribute::kOrdered) {
      return blocked && c == active_head ? c : nullptr;
    }
    if (blocked) return c;
  }
  return nullptr;
}

void Itl::abort_command(Command& command, bool task_aborted_status) {
  if (command.stage == Stage::kDone) return;
  if (command.aborted()) return task_aborted_status ? void() : end_silently(command);
  mark_aborted(command, task_aborted_status);
  switch (command.stage) {
    case Stage::kForwarded: {
      command.enter(Stage::kForwardedAborted);
      const std::shared_ptr<Link> link = command.link;  // the command may end within the call
      return link->abort(command);
    }
    case Stage::kRunning:
      command.nexus->aborting = true;
      return stay_in_range(command);
    default:
      return finish_aborted(command);
  }
}

void Itl::abort_commands(bool task_aborted_status, const Command* except) {
  const uint64_t before = next_sequence;
  // Marks them first: ending one command may run others, and none of the marked ones may start.
  for (Command* c = active_head; c; c = c->next_active) {
    if (c == except) continue;
    if (!c->aborted()) {
      mark_aborted(*c, task_aborted_status);
    } else if (!task_aborted_status) {
      end_silently(*c);
    }
  }
  // Restarts at the front each time, because ending a command may end its neighbors.
  for (Command* c = active_head; c && c->sequence < before;) {
    if (c->aborted() && ends_at_once(*c)) {
      finish_aborted(*c);
      c = active_head;
    } else if (c->aborted() && c->stage == Stage::kForwarded) {
      c->enter(Stage::kForwardedAborted);
      const std::shared_ptr<Link> link = c->link;
      link->abort(*c);
      c = active_head;
    } else {
      if (c->aborted() && c->stage == Stage::kRunning) {
        c->nexus->aborting = true;
        stay_in_range(*c);
      }
      c = c->next_active;
    }
  }
}

bool Itl::drained(const Drain& drain) const {
  if (drain.started_only) {
    for (const Command* c = active_head; c && c->sequence < drain.before; c = c->next_active) {
      if (started(*c)) return false;
    }
    return true;
  }
  for (const Command* c = active_head; c && c->sequence < drain.before; c = c->next_active) {
    if (c != drain.except && !(drain.attached_only && c->detached)) return false;
  }
  return true;
}

bool Itl::wait(Drain waiting) {
  if (drained(waiting)) return false;
  drains_.push_back(std::move(waiting));
  watched = true;
  return true;
}

bool Itl::drain(const Command* except, std::function<void()> done) {
  return wait({next_sequence, except, false, false, std::move(done)});
}

bool Itl::drain_attached(std::function<void()> done) {
  return wait({next_sequence, nullptr, false, true, std::move(done)});
}

bool Itl::drain_started(std::function<void()> done) {
  return wait({next_sequence, nullptr, true, false, std::move(done)});
}

bool Itl::detach_overdue() {
  const Nanos now = *reactor_context().now;
  unsigned detached = 0;
  bool again = false;
  for (Command* c = active_head; c; c = c->next_active) {
    if (!c->aborted() || c->detached || c->stage != Stage::kRunning) continue;
    if (now - c->aborted_at < limits::kAbortBound || !may_be_detached(*c) ||
        mutation_disables(Guard::kAbortBound)) {
      again = true;
      continue;
    }
    ++detached;
    c->detached = true;
    if (mutation_disables(Guard::kDetachedRange) && c->hold.state != RangeHold::State::kIdle) {
      unit().ranges().cancel(reactor_context().reactor, c->hold, reactor_context().reactors);
    }
    if (c->on_detached) c->on_detached(*c);
  }
  if (detached == 0) return again;
  log::warning("aborted commands are not waited for any more: the device has not completed them",
               {{"unit", unit().uuid_text()},
                {"initiator", nexus_id().initiator_name},
                {"commands", detached}});
  const std::shared_ptr<Itl> alive = shared_from_this();
  after_completion();
  return again;
}

std::vector<std::function<void()>> Itl::take_drained() {
  std::vector<std::function<void()>> done;
  for (size_t i = 0; i < drains_.size();) {
    if (drained(drains_[i])) {
      done.push_back(std::move(drains_[i].done));
      drains_.erase(drains_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  watched = ordering != 0 || !drains_.empty();
  return done;
}

}  // namespace sluice::lun
