#include "nexus/itl.h"

#include <utility>

#include "commands/handler.h"
#include "commands/run.h"
#include "nexus/forwarding.h"

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
  if (command.stage == Stage::kDone || command.aborted()) return;
  command.abort = task_aborted_status ? Abort::kWithStatus : Abort::kSilent;
  switch (command.stage) {
    case Stage::kForwarded: {
      command.enter(Stage::kForwardedAborted);
      const std::shared_ptr<Link> link = command.link;  // the command may end within the call
      return link->abort(command);
    }
    case Stage::kRunning:
      return stay_in_range(command);
    default:
      return finish_aborted(command);
  }
}

void Itl::abort_commands(bool task_aborted_status, const Command* except) {
  const uint64_t before = next_sequence;
  // Marks them first: ending one command may run others, and none of the marked ones may start.
  for (Command* c = active_head; c; c = c->next_active) {
    if (c == except || c->aborted()) continue;
    c->abort = task_aborted_status ? Abort::kWithStatus : Abort::kSilent;
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
      if (c->aborted() && c->stage == Stage::kRunning) stay_in_range(*c);
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
  const Command* oldest = active_head;
  if (oldest && oldest == drain.except) oldest = oldest->next_active;
  return !oldest || oldest->sequence >= drain.before;
}

bool Itl::wait(Drain waiting) {
  if (drained(waiting)) return false;
  drains_.push_back(std::move(waiting));
  watched = true;
  return true;
}

bool Itl::drain(const Command* except, std::function<void()> done) {
  return wait({next_sequence, except, false, std::move(done)});
}

bool Itl::drain_started(std::function<void()> done) {
  return wait({next_sequence, nullptr, true, std::move(done)});
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
