// Commands for LUNs without a unit: absent LUNs, and the REPORT LUNS well-known logical unit (SAM-5
// §4.7, SPC-5 §7).
#pragma once

#include "commands/command.h"

namespace sluice::lun {

// Ends the command within the call.
void answer_without_unit(Command& command);

}  // namespace sluice::lun
