// Logs failures of a medium with LUN, block range and cause. Repetitions of the same error on the
// same unit are counted; the next line contains their number.
//
// Threads: any; every thread has a limit of its own.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "base/clock.h"
#include "scsi/sense.h"

namespace sluice::lun {

class Unit;
struct Command;

// Time between two lines for the same error of the same unit, per thread.
inline constexpr Nanos kMediumLogInterval = Nanos{10} * 1'000'000'000;  // ns

struct MediumFailure {
  backend::Op op = backend::Op::kRead;
  uint64_t offset = 0;  // bytes; the start of the range
  uint64_t length = 0;  // bytes; 0: the whole medium (kFlush)
  const char* cause = "";
  int error = 0;  // errno, or another number that identifies the cause
};

// `command` fails with `sense`. `unit` is the unit of the failed request, which differs from the
// unit of the command in a copy.
void log_medium_failure(const Command& command, const Unit& unit, const MediumFailure& failure,
                        const scsi::Sense& sense);

}  // namespace sluice::lun
