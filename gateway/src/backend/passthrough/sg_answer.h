// The outcome of a command that the sg driver executed. Pure functions.
#pragma once

#include <scsi/sg.h>

#include <cstdint>

#include "base/bytes.h"

namespace sluice::passthrough {

// Sense key, code and qualifier from sense data in fixed (70h, 71h) or descriptor format (72h,
// 73h); zeros if the data is too short or has another format (SPC-5, Sense data).
struct SenseCode {
  uint8_t key = 0;
  uint8_t asc = 0;
  uint8_t ascq = 0;
};
SenseCode sense_code(ByteView sense);

struct SgOutcome {
  int error = 0;  // errno, > 0; 0: success
  // the device reported the reason: status and sense data go to the host unchanged
  bool answered = false;
  bool retry = false;    // the command was not executed and must be sent again
  bool refused = false;  // the device does not support this command or these bits
};

// `sense`: the bytes that were received. The host codes (DID_*) are those of the kernel's
// scsi_status.h.
SgOutcome outcome_of(const sg_io_hdr& header, ByteView sense);

}  // namespace sluice::passthrough
