// What became of a command that went through the sg driver. Pure.
#pragma once

#include <scsi/sg.h>

#include <cstdint>

#include "base/bytes.h"

namespace sluice::passthrough {

// Key, code and qualifier of sense data in fixed (70h, 71h) or descriptor format (72h, 73h); zeros
// where it is too short or of another kind (SPC-5, Sense data).
struct SenseCode {
  uint8_t key = 0;
  uint8_t asc = 0;
  uint8_t ascq = 0;
};
SenseCode sense_code(ByteView sense);

struct SgOutcome {
  int error = 0;          // errno, > 0; 0: it went well
  bool answered = false;  // the device has said why: status and sense go to the host as they came
  bool retry = false;     // nothing was done, and it is to be sent again
  bool refused = false;   // the device doesn't know this command, or not with these bits
};

// `sense`: as much as came of it. The host codes (DID_*) are of the kernel's scsi_status.h.
SgOutcome outcome_of(const sg_io_hdr& header, ByteView sense);

}  // namespace sluice::passthrough
