#include "commands/copies/third_party.h"

#include <mutex>

#include "scsi/command_table.h"
#include "unit/reservations/reservations.h"
#include "unit/unit_sense.h"

namespace sluice::lun {

std::optional<CopyRefusal> copy_refusal_slowly(Unit& unit, const NexusId& nexus, bool write) {
  static const scsi::CommandInfo* const kRead = scsi::lookup_command(0x88, scsi::kNoServiceAction);
  static const scsi::CommandInfo* const kWrite = scsi::lookup_command(0x8a, scsi::kNoServiceAction);
  const uint32_t gate = unit.gate();
  if (gate & Unit::kRemoved) {
    return CopyRefusal{false, scsi::Sense::make(scsi::SenseKey::kIllegalRequest, 0x25, 0x00)};
  }
  if ((gate & (Unit::kNotOwner | Unit::kDraining)) == Unit::kNotOwner) {
    // A copy reaches only what this gateway owns.
    const bool passing = unit.role().standing == Standing::kTransitioning;
    return CopyRefusal{false,
                       inaccessible(passing ? Standing::kTransitioning : Standing::kUnavailable)};
  }
  if (gate & Unit::kReserved) {
    const std::lock_guard lock(unit.mutex());
    if (!unit.reservations().allows(nexus, write ? *kWrite : *kRead)) return CopyRefusal{true, {}};
  }
  if (gate & Unit::kNotReady) return CopyRefusal{false, not_ready_sense(unit)};
  if (write && (gate & Unit::kWriteProtected)) {
    return CopyRefusal{false, write_protected_sense(unit)};
  }
  return std::nullopt;
}

}  // namespace sluice::lun
