// The latencies of the commands that ended in a reactor's current batch. They are known only at the
// end of the batch, when the answers are passed to the sockets: one clock reading serves all.
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
  // A command that arrived at `arrived` ended in the batch that began at `now`. `unit` (Itl::loan)
  // keeps the unit with `latency` alive until the end of the batch.
  void add(const BufferRef& unit, UnitStatistics::Latency& latency, Nanos arrived, Nanos now) {
    if (!runs_.empty()) {
      Run& last = runs_.back();
      if (last.latency == &latency && last.arrived == arrived) [[likely]] {
        ++last.commands;
        return;
      }
    }
    // If there are too many, they count as if the batch had ended when it began.
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
  // Commands of one kind that arrived together, as most commands of a batch do.
  struct Run {
    BufferRef unit;
    UnitStatistics::Latency* latency;
    Nanos arrived;
    uint64_t commands;
  };
  std::vector<Run> runs_;
};

}  // namespace sluice::lun
