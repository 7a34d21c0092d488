// Detects that the medium of a unit has errors now: commands ended with MEDIUM ERROR or HARDWARE
// ERROR (SPC-5 §4.4.8) a short time ago. The caller passes what UnitStatistics has counted.
//
// Threads: one.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/limits.h"

namespace sluice::lun {

class ErrorWatch {
 public:
  // `errors`: number of such commands until now. True: the last one is less than
  // limits::kMediumErrorsKnown ago.
  bool has_errors(uint64_t errors, Nanos now) {
    if (errors != errors_) last_ = now;
    errors_ = errors;
    return errors_ != 0 && now - last_ < limits::kMediumErrorsKnown;
  }

 private:
  uint64_t errors_ = 0;
  Nanos last_ = 0;  // when `errors_` increased
};

}  // namespace sluice::lun
