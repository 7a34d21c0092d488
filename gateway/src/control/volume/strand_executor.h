// A few threads for work that may wait for disks or other processes. Tasks of one strand (a volume,
// a pool) run one after the other; tasks of different strands run in parallel. A volume that hangs
// delays only itself, until all threads hang.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "control/volume/strand_queue.h"

namespace sluice::control {

class StrandExecutor {
 public:
  explicit StrandExecutor(unsigned threads);
  ~StrandExecutor() { stop(); }

  // Runs `task` after the strand's earlier tasks and after `delay`. After stop() it is dropped.
  void post(const std::string& strand, std::function<void()> task, Nanos delay = 0);
  // Waits for running tasks and drops the others.
  void stop();

 private:
  struct Worker {
    std::condition_variable wake;
    bool woken = false;
    std::thread thread;
  };
  void work(size_t self);
  void wait(Worker& self, std::optional<Nanos> until, std::unique_lock<std::mutex>& lock);
  // Returns the worker to notify after the mutex is released, because the woken thread needs it.
  // May be null.
  Worker* wake_locked();

  std::mutex mutex_;
  StrandQueue queue_;
  bool stopping_ = false;
  std::vector<Worker> workers_;
};

}  // namespace sluice::control
