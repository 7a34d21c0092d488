#include "lun/task_set.h"

#include <utility>

#include "lun/execution.h"
#include "lun/forwarding.h"

namespace sluice::lun {
namespace {

bool head_of_queue_active(const Itl& itl) {
  for (const Command* c = itl.active_head; c; c = c->next_active) {
    if (c->attribute == TaskAttribute::kHeadOfQueue) return true;
  }
  return false;
}

// The oldest blocked command that nothing holds up any more.
Command* first_runnable(const Itl& itl) {
  if (head_of_queue_active(itl)) return nullptr;
  for (Command* c = itl.active_head; c; c = c->next_active) {
    const bool blocked = c->stage == Command::Stage::kBlocked;
    if (c->attribute == TaskAttribute::kOrdered) {
      return blocked && c == itl.active_head ? c : nullptr;
    }
    if (blocked) return c;
  }
  return nullptr;
}

// It may have reached the backend, or will without looking at the unit's role again.
bool started(const Command& command) {
  return command.stage == Command::Stage::kWaitingForRange ||
         command.stage == Command::Stage::kWaitingForTurn ||
         command.stage == Command::Stage::kRunning;
}

bool drained(const Itl& itl, const Drain& drain) {
  if (drain.started_only) {
    for (const Command* c = itl.active_head; c && c->sequence < drain.before; c = c->next_active) {
      if (started(*c)) return false;
    }
    return true;
  }
  const Command* oldest = itl.active_head;
  if (oldest && oldest == drain.except) oldest = oldest->next_active;
  return !oldest || oldest->sequence >= drain.before;
}

bool wait(Itl& itl, Drain waiting) {
  if (drained(itl, waiting)) return false;
  itl.drains.push_back(std::move(waiting));
  itl.watched = true;
  return true;
}

// Waits for nobody but the task set, a range, a turn or data: nothing was submitted for it.
bool ends_at_once(const Command& command) {
  return command.stage == Command::Stage::kAwaitingData || command.stage == Command::Stage::kHeld ||
         command.stage == Command::Stage::kBlocked ||
         command.stage == Command::Stage::kWaitingForRange ||
         command.stage == Command::Stage::kWaitingForTurn;
}

}  // namespace

// SAM-5 §8.7: HEAD OF QUEUE runs at once; ORDERED waits for all that is older, SIMPLE for older
// ORDERED ones, and both for every HEAD OF QUEUE.
bool may_run(const Itl& itl, const Command& command) {
  if (command.attribute == TaskAttribute::kHeadOfQueue) return true;
  if (head_of_queue_active(itl)) return false;
  if (command.attribute == TaskAttribute::kOrdered) return &command == itl.active_head;
  for (const Command* c = command.previous_active; c; c = c->previous_active) {
    if (c->attribute == TaskAttribute::kOrdered) return false;
  }
  return true;
}

void after_completion(Itl& itl) {
  // Commands run below may complete at once and come back here: the outermost call goes on.
  if (itl.releasing) return;
  itl.releasing = true;
  while (Command* command = first_runnable(itl)) run_unblocked(*command);
  std::vector<std::function<void()>> done;
  for (size_t i = 0; i < itl.drains.size();) {
    if (drained(itl, itl.drains[i])) {
      done.push_back(std::move(itl.drains[i].done));
      itl.drains.erase(itl.drains.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  itl.watched = itl.ordering != 0 || !itl.drains.empty();
  itl.releasing = false;
  for (auto& tell : done) tell();
}

void abort_all(Itl& itl, bool task_aborted_status, const Command* except) {
  const uint64_t before = itl.next_sequence;
  // Marked first: ending one command may run others, and none of these may start any more.
  for (Command* c = itl.active_head; c; c = c->next_active) {
    if (c == except || c->aborted) continue;
    c->aborted = true;
    c->task_aborted_status = task_aborted_status;
  }
  // From the front each time, because ending a command may end its neighbours.
  for (Command* c = itl.active_head; c && c->sequence < before;) {
    if (c->aborted && ends_at_once(*c)) {
      finish_aborted(*c);
      c = itl.active_head;
    } else if (c->aborted && c->stage == Command::Stage::kForwarded) {
      c->stage = Command::Stage::kForwardedAborted;
      const std::shared_ptr<Link> link = c->link;
      link->abort(*c);
      c = itl.active_head;
    } else {
      if (c->aborted && c->stage == Command::Stage::kRunning) stay_in_range(*c);
      c = c->next_active;
    }
  }
}

bool drain(Itl& itl, const Command* except, std::function<void()> done) {
  return wait(itl, {itl.next_sequence, except, false, std::move(done)});
}

bool drain_started(Itl& itl, std::function<void()> done) {
  return wait(itl, {itl.next_sequence, nullptr, true, std::move(done)});
}

}  // namespace sluice::lun
