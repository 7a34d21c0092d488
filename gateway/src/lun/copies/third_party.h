// What third-party copies may do: their limits, and whether an I_T nexus may touch a unit that is
// not the one its command was sent to.
#pragma once

#include <optional>

#include "lun/nexus.h"
#include "lun/unit.h"
#include "scsi/sense.h"
#include "scsi/third_party_copy.h"

namespace sluice::lun {

// As VPD 8F and RECEIVE COPY RESULTS(OPERATING PARAMETERS) show them, and as they are enforced.
scsi::ThirdPartyCopyLimits copy_limits(const Unit& unit);

struct CopyRefusal {
  bool conflict = false;  // RESERVATION CONFLICT; else `sense` says why
  scsi::Sense sense;
};

// As if the nexus read or wrote the unit itself.
std::optional<CopyRefusal> copy_refusal_slowly(Unit& unit, const NexusId& nexus, bool write);
inline std::optional<CopyRefusal> copy_refusal(Unit& unit, const NexusId& nexus, bool write) {
  if (unit.gate() == 0) [[likely]]
    return std::nullopt;
  return copy_refusal_slowly(unit, nexus, write);
}

}  // namespace sluice::lun
