// The stages of a command between begin() and its handler.
#pragma once

#include "commands/command.h"
#include "commands/run.h"
#include "nexus/itl.h"
#include "unit/unit.h"

namespace sluice::lun {

// Checks a command that just entered the task set: CDB, gate (`word` is its gate word), required
// data. False: it was answered.
bool parse_and_admit(Unit& unit, Command& command, uint64_t word);

// SAM-5 §8.6: the ACA attribute is invalid because NACA is not supported; 5 to 7 are reserved.
bool attribute_known(const Command& command, scsi::Sense* sense);

// All data has arrived: runs the command, or leaves it blocked by the task set or a range.
inline void dispatch(Unit& unit, Command& command) {
  if (command.itl->ordering != 0 && !itl_of(command).may_run(command)) [[unlikely]] {
    command.stage = Command::Stage::kBlocked;
    return;
  }
  run(unit, command);
}

}  // namespace sluice::lun
