// How long the commands took that ended in a reactor's present batch. That is known at its end
// only, when their answers are handed to the sockets: one reading of the clock serves them all.
//
// Threads: one reactor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/buffer.h"
#include "base/clock.h"
#include "unit/statistics.h"

namespace sluice::lun {

class LatencyLog {
 public:
  // A command that arrived at `arrived` ended in the batch that began at `now`; `unit` is the loan
  // (Itl::loan) of the unit that `latency` is part of: it may be gone before the batch is.
  void add(const BufferRef& unit, UnitStatistics::Latency& latency, Nanos arrived, Nanos now) {
    if (!runs_.empty()) {
      Run& last = runs_.back();
      if (last.latency == &latency && last.arrived == arrived) [[likely]] {
        ++last.commands;
        return;
      }
    }
    // Those of a longer batch count as if it had ended when it began.
    if (runs_.size() == kMostRuns) [[unlikely]]
      settle(now);
    runs_.push_back({unit, &latency, arrived, 1});
  }
  // The batch ended at `end`.
  void settle(Nanos end) {
    for (const Run& run : runs_) run.latency->add(end - run.arrived, run.commands);
    runs_.clear();
  }

  static constexpr size_t kMostRuns = 8192;

 private:
  // Commands of one kind that arrived together, as most do that end in the batch they came with.
  struct Run {
    BufferRef unit;
    UnitStatistics::Latency* latency;
    Nanos arrived;
    uint64_t commands;
  };
  std::vector<Run> runs_;
};

}  // namespace sluice::lun
