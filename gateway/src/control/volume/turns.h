// A few threads for work that may wait for disks and for other processes. Tasks of one lane (a
// volume, a pool) run one after the other, those of different lanes side by side: a volume that
// hangs holds up itself alone, until all threads hang.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"

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
  struct Lane {
    std::deque<std::function<void()>> tasks;
    bool running = false;
  };
  void work();
  Nanos release_due_locked();  // until the next delayed one

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Lane> lanes_;  // with tasks or running
  std::deque<std::string> ready_;      // lanes that have a task and don't run
  std::multimap<Nanos, std::pair<std::string, std::function<void()>>> delayed_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// CLOCK_BOOTTIME, which counts while the machine sleeps.
Nanos boot_time();

}  // namespace sluice::control
