// What a command must pass before it runs (SAM-5 §5.3.3 says in which order).
#pragma once

#include "commands/command.h"
#include "commands/command_context.h"
#include "unit/unit.h"

namespace sluice::lun {

// Steady state is one load and one compare, reserved or not: a word of the gate under which this
// nexus was let through once, whatever the command. A change of reservations makes a new word, so
// the next command takes the slow way round and looks again.
//
// PREEMPT AND ABORT needs no lock here (SPC-5 §5.14.11.2.6): the new word is published before
// Unit::abort_everywhere posts to every reactor. A command of a preempted nexus that found the old
// word open was in its task set before, so the posted task aborts it and waits for it; one that
// enters later, on that reactor, sees the new word, which the post made visible.

// The slow way round. false: the command has been answered.
bool passes_gate_slowly(Unit& unit, Command& command);

// `word`: Unit::gate_word(), loaded after the command entered the task set.
inline bool passes_gate(Unit& unit, Command& command, uint64_t word) {
  const CommandContext& itl = *command.itl;
  if (word == itl.open_gate && !itl.attention.load(std::memory_order_acquire) && !itl.read_only)
      [[likely]] {
    return true;
  }
  return passes_gate_slowly(unit, command);
}

// Once more before a command runs that had to wait for data, its turn or a range: a reservation
// may have been taken meanwhile, the medium may have gone. Unit attentions are not looked at: they
// are for commands that enter the task set later. false: answered.
bool still_passes_slowly(Unit& unit, Command& command);

inline bool still_passes(Unit& unit, Command& command, uint64_t word) {
  const CommandContext& itl = *command.itl;
  if (word == itl.open_gate && !itl.removed && !itl.read_only) [[likely]]
    return true;
  return still_passes_slowly(unit, command);
}

// A pending unit attention is reported instead of running the command; false: so it was.
// command.info may be null: a command this gateway doesn't know.
bool passes_attention(Unit& unit, Command& command);

// The unit left this nexus's inventory, which answers like a LUN that never was; false: so it was.
bool passes_removed(const Unit& unit, Command& command);

// What a nexus that may only read is kept from (CommandContext::read_only); false: it was refused.
bool passes_protection(Command& command);

// The CDB means nothing to the unit, for the reason in `sense`; a pending unit attention comes
// first.
void refuse_cdb(Unit& unit, Command& command, const scsi::Sense& sense);

}  // namespace sluice::lun
