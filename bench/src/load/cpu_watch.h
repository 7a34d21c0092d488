// How much CPU processes used between two moments, read from /proc without help from them.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace sluice::bench {

struct CpuUse {          // of all processes watched, together
  uint64_t run_ns = 0;   // on a CPU, all threads
  uint64_t wait_ns = 0;  // runnable but not running: someone else had the core
  uint64_t slices = 0;   // times a thread was put on a CPU
  uint64_t stat_ns = 0;  // utime + stime of the process, for comparison (10 ms steps)
};

struct CoreUse {  // of one core, in ns, 10 ms steps
  uint64_t busy_ns = 0;
  uint64_t softirq_ns = 0;
  uint64_t steal_ns = 0;
};

class CpuWatch {
 public:
  // Core -1 is none.
  CpuWatch(std::vector<int> pids, int core) : pids_(std::move(pids)), core_(core) {}
  void start();
  void stop();
  bool watching() const { return !pids_.empty(); }
  const CpuUse& processes() const { return processes_; }
  const CoreUse& core() const { return core_use_; }

 private:
  struct Thread {
    uint64_t run_ns = 0;
    uint64_t wait_ns = 0;
    uint64_t slices = 0;
  };
  using Threads = std::map<int, Thread>;  // by thread id, which is unique among processes

  Threads read_threads() const;
  uint64_t read_stat_ns() const;
  CoreUse read_core() const;

  std::vector<int> pids_;
  int core_;
  Threads threads_at_start_;
  uint64_t stat_at_start_ = 0;
  CoreUse core_at_start_;
  CpuUse processes_;
  CoreUse core_use_;
};

}  // namespace sluice::bench
