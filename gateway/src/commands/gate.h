// The checks before a command runs (SAM-5 §5.3.3 defines their order).
#pragma once

#include "commands/command.h"
#include "commands/command_context.h"
#include "unit/unit.h"

namespace sluice::lun {

// In steady state the check is one load and one compare, with or without reservations: the gate
// word is one under which this nexus was admitted before, for any command. A change of reservations
// changes the word, so the next command takes the slow path.
//
// PREEMPT AND ABORT needs no lock here (SPC-5 §5.14.11.2.6): the new word is published before
// abort_everywhere() posts to every reactor. A command of a preempted nexus that saw the old word
// was in its task set before, so the posted task aborts it and waits for it. A command that enters
// later on that reactor sees the new word, because the post made it visible.

// The slow path. False: the command was answered.
bool check_admission(Unit& unit, Command& command);

// `word`: Unit::gate_word(), loaded after the command entered the task set.
inline bool is_admitted(Unit& unit, Command& command, uint64_t word) {
  const CommandContext& itl = *command.itl;
  if (word == itl.open_gate && !itl.attention.load(std::memory_order_acquire) && !itl.read_only)
      [[likely]] {
    return true;
  }
  return check_admission(unit, command);
}

// Repeats the check before a command runs that had to wait for data, its change or a range: a
// reservation may have been established or the medium lost meanwhile. Unit attentions are not
// checked; they are for commands that enter the task set later. False: it was answered.
bool recheck_admission(Unit& unit, Command& command);

inline bool is_still_admitted(Unit& unit, Command& command, uint64_t word) {
  const CommandContext& itl = *command.itl;
  if (word == itl.open_gate && !itl.removed && !itl.read_only) [[likely]]
    return true;
  return recheck_admission(unit, command);
}

// Reports a pending unit attention instead of running the command. False: it did. command.info may
// be null for an unknown command.
bool passes_attention(Unit& unit, Command& command);

// The unit was removed from this nexus's inventory: answers as an absent LUN. False: it did.
bool passes_removed(const Unit& unit, Command& command);

// Refuses commands that a read-only nexus may not send (CommandContext::read_only). False: it did.
bool passes_protection(Command& command);

// The CDB is invalid for the unit, as `sense` says; a pending unit attention is reported first.
void refuse_cdb(Unit& unit, Command& command, const scsi::Sense& sense);

}  // namespace sluice::lun
