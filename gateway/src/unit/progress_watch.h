// Detects that the backend of a unit is stuck: it has requests, and has completed none for
// limits::kUnitStuck. The caller passes what UnitStatistics has counted.
//
// Threads: one.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/limits.h"

namespace sluice::lun {

class ProgressWatch {
 public:
  // `in_progress`: number of requests now; `completed`: until now. True: it is stuck.
  bool is_stuck(uint64_t in_progress, uint64_t completed, Nanos now) {
    const bool busy = in_progress != 0;
    if (!busy || !was_busy_ || completed != completed_) since_ = now;
    was_busy_ = busy;
    completed_ = completed;
    return busy && now - since_ >= limits::kUnitStuck;
  }

 private:
  bool was_busy_ = false;
  uint64_t completed_ = 0;
  Nanos since_ = 0;  // it has requests, and completed none
};

}  // namespace sluice::lun
