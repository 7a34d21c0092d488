// The task set of one I_T_L nexus (SAM-5 §8): who is in it, who may run, who waits for whom to be
// gone. TST is 001b, so every I_T_L nexus has a set of its own and no lock is needed.
#pragma once

#include <functional>

#include "lun/command.h"
#include "lun/nexus.h"

namespace sluice::lun {

inline void enter(Itl& itl, Command& command) {
  command.sequence = itl.next_sequence++;
  command.previous_active = itl.active_tail;
  command.next_active = nullptr;
  (itl.active_tail ? itl.active_tail->next_active : itl.active_head) = &command;
  itl.active_tail = &command;
  ++itl.active;
  if (command.attribute >= TaskAttribute::kOrdered) [[unlikely]] {
    ++itl.ordering;
    itl.watched = true;
  }
}

inline void leave(Itl& itl, Command& command) {
  Command* before = command.previous_active;
  Command* after = command.next_active;
  (before ? before->next_active : itl.active_head) = after;
  (after ? after->previous_active : itl.active_tail) = before;
  --itl.active;
  if (command.attribute >= TaskAttribute::kOrdered) [[unlikely]]
    --itl.ordering;
}

// Whether a command in the set may run now. Always true while nothing but SIMPLE is about.
bool may_run(const Itl& itl, const Command& command);

// A watched set lost a command: runs whom it held up, tells drains. The caller keeps `itl` alive.
void after_completion(Itl& itl);

// Aborts every command that is in the set now, but `except`. Those that run end when the backend
// has let go of them.
void abort_all(Itl& itl, bool task_aborted_status, const Command* except);

// `done` runs once every command that is in the set now, but `except`, is complete. false: there
// is none, and `done` is dropped.
bool drain(Itl& itl, const Command* except, std::function<void()> done);

// The same of commands that were started: those that wait for data, their turn in the task set or
// an owner are not waited for, because they look at the unit's role before they go on.
bool drain_started(Itl& itl, std::function<void()> done);

}  // namespace sluice::lun
