// LOG SENSE (SPC-5 §6.8, §7.3; SBC-4 §6.4).
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "scsi/outcome.h"

namespace sluice::scsi {

struct LogUnit {
  // Logical block provisioning page (0Ch), in bytes; has_provisioning false: no such page.
  bool has_provisioning = false;
  uint64_t available_bytes = UINT64_MAX;  // UINT64_MAX: unknown, the parameter is left out
  uint64_t used_bytes = UINT64_MAX;       // UINT64_MAX: unknown, the parameter is left out
  bool dedicated = false;                 // the available resource is this unit's alone
  uint8_t threshold_exponent = 0;         // as in VPD B2: counts are in 2^exponent blocks
  uint32_t block_size = 512;
};

// Pages 00h, 00h/FFh and 0Ch. PPC and SP are refused by the CDB mask; PARAMETER POINTER beyond
// the last parameter is 05/24/00.
Outcome<size_t> build_log_sense(ByteView cdb, const LogUnit& unit, MutableBytes out);

}  // namespace sluice::scsi
