// Commands for LUNs that no unit stands behind: those that don't exist, and the REPORT LUNS
// well-known logical unit (SAM-5 §4.7, SPC-5 §7).
#pragma once

#include "commands/command.h"

namespace sluice::lun {

// Ends the command, inside the call.
void answer_without_unit(Command& command);

}  // namespace sluice::lun
