// Commands for LUNs that no unit stands behind: those that don't exist, and the REPORT LUNS
// well-known logical unit (SAM-5 §4.7, SPC-5 §7).
#pragma once

#include "lun/command.h"
#include "lun/nexus.h"

namespace sluice::lun {

// Ends the command, inside the call.
void answer_without_unit(Nexus& nexus, Command& command);

// REPORT LUNS is the same through every LUN; it clears 3F/0E for the nexus (SPC-5 §6.33.1).
void answer_report_luns(Nexus& nexus, Command& command);

}  // namespace sluice::lun
