// Commands enter and leave the task set of their I_T_L nexus (SAM-5 §8).
#pragma once

#include "commands/command.h"
#include "commands/command_context.h"

namespace sluice::lun {

// A command begins: resets what an earlier use of the object left.
inline void forget_last_answer(Command& command) {
  command.status = scsi::Status::kGood;
  command.abort = Abort::kNone;
  command.detached = false;
  command.outcome = Outcome::kAnswered;
  command.prepared = command.charged = command.submitted = false;
  command.held_since = -1;
  command.sense_size = 0;
  command.data_in_size = 0;
  command.data_in.clear();
  command.data_out_wanted = 0;
  command.data_out_size = 0;
  command.info = nullptr;
  command.wants_hold = false;
  command.cleanup = nullptr;
}

inline void enter(CommandContext& itl, Command& command) {
  command.enter(Stage::kEntered);
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

inline void leave(CommandContext& itl, Command& command) {
  Command* before = command.previous_active;
  Command* after = command.next_active;
  (before ? before->next_active : itl.active_head) = after;
  (after ? after->previous_active : itl.active_tail) = before;
  --itl.active;
  if (command.attribute >= TaskAttribute::kOrdered) [[unlikely]]
    --itl.ordering;
}

}  // namespace sluice::lun
