// A run: fill if asked, warm up, measure, drain.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "load/cpu_watch.h"
#include "load/session.h"

namespace sluice::bench {

enum class Wait : uint8_t { kPoll, kReceive, kSleep };

struct LoadOptions {
  Wait wait = Wait::kPoll;
  double warmup_s = 0.3;
  double seconds = 1.0;
  std::vector<int> watch_pids;
  int watch_core = -1;
};

struct LoadResult {
  double seconds = 0;    // the window as it was
  double busy = 0;       // share of the window in which there was something to do
  double own_cpu = 0;    // share of the window the client's thread was on a CPU
  double own_wait = 0;   // share it was runnable but had none
  bool drained = false;  // every command was answered in the end
  uint64_t filled = 0;   // commands of the fill phase
  Tally tally;           // of the window, all sessions
  uint64_t errors = 0;   // of the whole run
  uint64_t mismatches = 0;
};

class Load {
 public:
  Load(std::vector<std::unique_ptr<Session>> sessions, const LoadOptions& options)
      : sessions_(std::move(sessions)),
        options_(options),
        watch_(options.watch_pids, options.watch_core),
        own_({}, -1) {}

  LoadResult run(bool fill);
  const CpuWatch& watch() const { return watch_; }

 private:
  void wait_for_work();
  void poll_once();  // one round over all sessions
  void run_until(uint64_t end_ns);
  bool drain();
  void fill();
  void collect(Tally* into);
  bool any_failed() const;

  std::vector<std::unique_ptr<Session>> sessions_;
  LoadOptions options_;
  CpuWatch watch_;
  CpuWatch own_;
  std::vector<pollfd> polled_;
  uint64_t idle_ns_ = 0;
  uint64_t polled_at_ = 0;
  uint64_t worked_at_ = 0;  // when something last came or could be sent
  LoadResult result_;
};

}  // namespace sluice::bench
