// A few threads for work that may wait for disks and for other processes. Tasks of one lane (a
// volume, a pool) run one after the other, those of different lanes side by side: a volume that
// hangs holds up itself alone, until all threads hang.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "control/volume/turn_queue.h"

namespace sluice::control {

class Turns {
 public:
  explicit Turns(unsigned threads);
  ~Turns() { stop(); }

  // Runs `task` as soon as the lane's earlier tasks have ended, but not before `delay` is over.
  // Dropped once stop() was called.
  void post(const std::string& lane, std::function<void()> task, Nanos delay = 0);
  // Waits for the tasks that run, drops the others.
  void stop();

 private:
  struct Worker {
    std::condition_variable wake;
    bool woken = false;
    std::thread thread;
  };
  void work(size_t self);
  void wait(Worker& self, std::optional<Nanos> until, std::unique_lock<std::mutex>& lock);
  // To be notified once the mutex is free: who is woken needs it. May be null.
  Worker* wake_locked();

  std::mutex mutex_;
  TurnQueue queue_;
  bool stopping_ = false;
  std::vector<Worker> workers_;
};

// CLOCK_BOOTTIME, which counts while the machine sleeps.
Nanos boot_time();

}  // namespace sluice::control
