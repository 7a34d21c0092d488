// How a command moves from stage to stage between begin() and its handler.
#pragma once

#include "lun/command.h"
#include "lun/unit.h"

namespace sluice::lun {

// Looks at a command that just entered the task set: CDB, gate (`word` of it), what data it wants.
// false: it was answered.
bool look_at(Unit& unit, Command& command, uint64_t word);

// SAM-5 §8.6: the ACA attribute means nothing where NACA is refused; 5 to 7 are reserved.
bool attribute_known(const Command& command, scsi::Sense* sense);

// All data is there: runs the command, or leaves it blocked behind the task set or a range.
void dispatch(Unit& unit, Command& command);

// The task set let go of a blocked command.
void run_unblocked(Command& command);

// Aborts one command: now if nothing was submitted for it, else when the backend is done with it.
void abort_command(Command& command, bool task_aborted_status);

// DESIGN R6: to be asked when a command has all it needs and the next thing is its request to a
// backend, here or elsewhere. false: it ended as stale; or, if an earlier part of it was submitted,
// by dropping its nexus.
bool is_fresh_slowly(Command& command);
inline bool is_fresh(Command& command) {
  return command.fresh_until == 0 || is_fresh_slowly(command);
}

// Of a command that was marked aborted and is still at work. Its blocks stay its own (DESIGN R5);
// not so in a canary.
void stay_in_range(Command& command);

// Ends a command that was marked aborted.
void finish_aborted(Command& command);

}  // namespace sluice::lun
