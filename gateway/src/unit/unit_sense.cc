#include "unit/unit_sense.h"

#include "unit/unit.h"

namespace sluice::lun {

using scsi::Sense;
using scsi::SenseKey;

Sense not_ready_sense(const Unit& unit) {
  // 04/02: LOGICAL UNIT NOT READY, INITIALIZING COMMAND REQUIRED, that is START STOP UNIT.
  return Sense::make(SenseKey::kNotReady, 0x04, unit.stopped() ? 0x02 : 0x00);
}

Sense write_protected_sense(const Unit& unit) {
  // 27/00: WRITE PROTECTED. 27/02: LOGICAL UNIT SOFTWARE WRITE PROTECTED.
  const uint8_t qualifier = unit.backend().info().read_only ? 0x00 : 0x02;
  return Sense::make(SenseKey::kDataProtect, 0x27, qualifier);
}

Sense inaccessible(Standing standing) {
  // 04/0A: LOGICAL UNIT NOT ACCESSIBLE, ASYMMETRIC ACCESS STATE TRANSITION; 04/0C: ..., TARGET PORT
  // IN UNAVAILABLE STATE.
  return Sense::make(SenseKey::kNotReady, 0x04, is_unavailable(standing) ? 0x0c : 0x0a);
}

}  // namespace sluice::lun
