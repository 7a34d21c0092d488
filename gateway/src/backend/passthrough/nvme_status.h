// The status of an NVMe command in SCSI's words, as the NVM Express SCSI Translation Reference 1.5
// (Status Code Translations) has it, with what later NVMe specifications added; and as an errno for
// those who ask a backend without SCSI. Pure.
#pragma once

#include <cstdint>

#include "scsi/sense.h"

namespace sluice::passthrough {

struct NvmeOutcome {
  int error = 0;  // errno, > 0; 0: it went well
  scsi::Status status = scsi::Status::kGood;
  scsi::Sense sense;   // for kCheckCondition
  bool retry = false;  // nothing was done and the next attempt may go well
};

// `status`: the status field without its phase bit: SC in bits 7:0, SCT in 10:8, DNR bit 14.
NvmeOutcome outcome_of(uint16_t status);

}  // namespace sluice::passthrough
