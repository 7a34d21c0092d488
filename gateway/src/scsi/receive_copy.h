// Parameter data of RECEIVE COPY RESULTS (LID1) (SPC-5 §6.20-6.24).
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "scsi/sense.h"
#include "scsi/third_party_copy_limits.h"

namespace sluice::scsi {

enum class CopyState : uint8_t {  // COPY MANAGER STATUS
  kInProgress = 0,
  kCompletedWithoutErrors = 1,
  kCompletedWithErrors = 2,
};

struct CopyResult {
  CopyState state = CopyState::kInProgress;
  uint16_t segments_processed = 0;
  uint64_t bytes_transferred = 0;
  // the failed segment, when kCompletedWithErrors
  Status status = Status::kGood;
  Sense sense{};
};

size_t build_operating_parameters(const ThirdPartyCopyLimits& limits, MutableBytes out);
size_t build_copy_status(const CopyResult& result, MutableBytes out);
// Inline data held for the application client: there never is any.
size_t build_receive_data(MutableBytes out);
size_t build_failed_segment_details(const CopyResult& result, bool descriptor_sense,
                                    MutableBytes out);

}  // namespace sluice::scsi
