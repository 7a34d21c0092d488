#include "lun/copies/third_party.h"

#include <mutex>

#include "base/limits.h"
#include "lun/gate.h"
#include "lun/placing.h"
#include "lun/reservations/reservations.h"
#include "scsi/command_table.h"

namespace sluice::lun {

scsi::ThirdPartyCopyLimits copy_limits(const Unit& unit) {
  scsi::ThirdPartyCopyLimits limits;
  const uint32_t block_size = unit.block_size();
  limits.block_size = block_size;
  limits.granularity_log2 = static_cast<uint8_t>(__builtin_ctz(block_size));
  limits.max_segment_bytes = 65535u * block_size;
  limits.max_token_blocks = limits::kMaxCopyBytes / block_size;
  limits.optimal_token_blocks = limits.max_token_blocks;
  return limits;
}

std::optional<CopyRefusal> copy_refusal_slowly(Unit& unit, const NexusId& nexus, bool write) {
  static const scsi::CommandInfo* const kRead = scsi::lookup_command(0x88, scsi::kNoServiceAction);
  static const scsi::CommandInfo* const kWrite = scsi::lookup_command(0x8a, scsi::kNoServiceAction);
  const uint32_t gate = unit.gate();
  if (gate & Unit::kRemoved) {
    return CopyRefusal{false, scsi::Sense::make(scsi::SenseKey::kIllegalRequest, 0x25, 0x00)};
  }
  if ((gate & (Unit::kElsewhere | Unit::kDraining)) == Unit::kElsewhere) {
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
