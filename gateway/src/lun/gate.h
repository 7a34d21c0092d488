// What a command must pass before it runs (SAM-5 §5.3.3 says in which order).
#pragma once

#include "lun/command.h"
#include "lun/nexus.h"
#include "lun/unit.h"

namespace sluice::lun {

// The slow way round. false: the command has been answered.
bool passes_gate_slowly(Unit& unit, Command& command);

inline bool passes_gate(Unit& unit, Command& command) {
  const Itl& itl = *command.itl;
  if (unit.gate() == 0 && !itl.attention.load(std::memory_order_acquire) && !itl.read_only)
      [[likely]] {
    return true;
  }
  return passes_gate_slowly(unit, command);
}

// Once more before a command runs that had to wait for data, its turn or a range: a reservation
// may have been taken meanwhile, the medium may have gone. Unit attentions are not looked at: they
// are for commands that enter the task set later. false: answered.
bool still_passes_slowly(Unit& unit, Command& command);

inline bool still_passes(Unit& unit, Command& command) {
  if (unit.gate() == 0 && !command.itl->removed && !command.itl->read_only) [[likely]]
    return true;
  return still_passes_slowly(unit, command);
}

// The CDB means nothing to the unit, for the reason in `sense`; a pending unit attention comes
// first.
void refuse_cdb(Unit& unit, Command& command, const scsi::Sense& sense);

// Why the unit is not ready: 02/04/02 when stopped, else 02/04/00.
scsi::Sense not_ready_sense(const Unit& unit);

}  // namespace sluice::lun
