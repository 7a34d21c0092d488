// Translates the status of an NVMe command into SCSI status and sense data, as the NVM Express SCSI
// Translation Reference 1.5 (Status Code Translations) defines, extended for later NVMe
// specifications; and into an errno for callers without SCSI. Pure functions.
#pragma once

#include <cstdint>

#include "scsi/sense.h"

namespace sluice::passthrough {

struct NvmeOutcome {
  int error = 0;  // errno, > 0; 0: success
  scsi::Status status = scsi::Status::kGood;
  scsi::Sense sense;   // for kCheckCondition
  bool retry = false;  // the command was not executed, and a retry may succeed
};

// `status`: the status field without its phase bit: SC in bits 7:0, SCT in 10:8, DNR bit 14.
NvmeOutcome outcome_of(uint16_t status);

}  // namespace sluice::passthrough
