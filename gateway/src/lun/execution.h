// How a command moves from stage to stage between begin() and its handler.
#pragma once

#include "lun/command.h"
#include "lun/unit.h"

namespace sluice::lun {

// All data is there: runs the command, or leaves it blocked behind the task set or a range.
void dispatch(Unit& unit, Command& command);

// The task set let go of a blocked command.
void run_unblocked(Command& command);

// Aborts one command: now if nothing was submitted for it, else when the backend is done with it.
void abort_command(Command& command, bool task_aborted_status);

// Ends a command that was marked aborted.
void finish_aborted(Command& command);

}  // namespace sluice::lun
