// The checks of a command against its path and its unit's state (SAM-5 §5.3.3 defines their order):
// removed LUN, task attribute, unit attention, reservations, readiness, write
// protection.
#pragma once

#include "commands/command.h"
#include "commands/command_context.h"
#include "commands/decision.h"
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

// The slow path. command.info may be null for an unknown command.
Verdict check_admission(Unit& unit, Command& command, Decision* decision);

// `word`: Unit::gate_word(), loaded after the command entered the task set.
inline Verdict admit(Unit& unit, Command& command, uint64_t word, Decision* decision) {
  const CommandContext& itl = *command.itl;
  if (word == itl.open_gate && !itl.attention.load(std::memory_order_acquire) && !itl.read_only)
      [[likely]] {
    return Verdict::kProceed;
  }
  return check_admission(unit, command, decision);
}

// Repeats the check before a command runs that had to wait for data, its change or a range: a
// reservation may have been established or the medium lost meanwhile. Unit attentions are not
// checked; they are for commands that enter the task set later.
Verdict recheck_admission(Unit& unit, Command& command, Decision* decision);

inline Verdict admit_again(Unit& unit, Command& command, uint64_t word, Decision* decision) {
  const CommandContext& itl = *command.itl;
  if (word == itl.open_gate && !itl.removed && !itl.read_only) [[likely]]
    return Verdict::kProceed;
  return recheck_admission(unit, command, decision);
}

// Removes the oldest pending unit attention of the nexus, unless the command ignores it, and
// reports it instead of running the command. command.info may be null for an unknown command.
Verdict take_attention(Unit& unit, Command& command, Decision* decision);

// SAM-5 §8.6: the ACA attribute is invalid because NACA is not supported; 5 to 7 are reserved.
inline bool attribute_known(const Command& command, scsi::Sense* sense) {
  if (command.attribute < TaskAttribute::kAca) [[likely]]
    return true;
  // INVALID MESSAGE ERROR
  *sense = scsi::Sense::make(scsi::SenseKey::kIllegalRequest, 0x49, 0x00);
  return false;
}

// The LUN was removed from the inventory: the command is answered as for an absent LUN.
Verdict check_removed(const Unit& unit, const Command& command, Decision* decision);

// Refuses commands that a read-only nexus may not send (CommandContext::read_only).
Verdict check_protection(const Command& command, Decision* decision);

// The CDB is invalid for the unit, as `sense` says; a pending unit attention is reported first.
Verdict refuse_cdb(Unit& unit, const Command& command, const scsi::Sense& sense,
                   Decision* decision);

}  // namespace sluice::lun
