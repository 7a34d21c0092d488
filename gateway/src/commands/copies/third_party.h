// Whether the I_T nexus of a third-party copy may access a unit other than the one that received
// the command.
#pragma once

#include <optional>

#include "scsi/sense.h"
#include "unit/nexus_id.h"
#include "unit/unit.h"

namespace sluice::lun {

struct CopyRefusal {
  bool conflict = false;  // RESERVATION CONFLICT; otherwise see `sense`
  scsi::Sense sense;
};

// Checks as if the nexus itself read or wrote the unit.
std::optional<CopyRefusal> copy_refusal_slowly(Unit& unit, const NexusId& nexus, bool write);
inline std::optional<CopyRefusal> copy_refusal(Unit& unit, const NexusId& nexus, bool write) {
  if (unit.gate() == 0) [[likely]]
    return std::nullopt;
  return copy_refusal_slowly(unit, nexus, write);
}

}  // namespace sluice::lun
