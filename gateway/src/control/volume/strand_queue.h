// The scheduling decisions of strand_executor.h: which task runs next, how threads wait, and which
// one is woken. Waiting threads are woken one at a time, and only for work that no awake thread
// will take. Otherwise hundreds of volumes with simultaneous tasks would wake many threads, which
// would all wait for one mutex.
//
// One waiting thread is the clock keeper: it waits until the next delayed task is due; the others
// wait until they are woken. A thread that runs a task may take long and counts as absent. So it
// has another thread woken if more tasks are ready or there is no clock keeper.
//
// It has no threads, mutex or clock of its own. The caller serializes all calls.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace sluice::control {

class StrandQueue {
 public:
  using Task = std::function<void()>;
  using Thread = size_t;  // index, from 0

  // What a thread does next: runs `task` of `strand`, or waits until it is woken, at most until
  // `until` if that is set.
  struct Next {
    Task task = nullptr;
    std::string strand = {};
    std::optional<Nanos> until = {};
  };

  // The task runs at `due` at the earliest (possibly `now`), after the earlier tasks of its strand.
  void post(const std::string& strand, Task task, Nanos due, Nanos now);
  // Called by a thread that begins, was woken, has waited long enough or has finished its task.
  Next next(Thread thread, Nanos now);
  void ended(const std::string& strand);  // called before next() by the thread that ran the task
  // After post(), and after a next() that returned a task: the thread to wake, if any.
  std::optional<Thread> wake();
  // Drops all tasks.
  void clear();

 private:
  struct Strand {
    std::deque<Task> tasks;
    bool running = false;
  };
  struct ClockKeeper {
    Thread thread = 0;
    Nanos until = 0;
  };

  void put(const std::string& strand, Task task);
  void release_due(Nanos now);
  bool clock_is_kept() const;
  void waits_no_more(Thread thread);

  std::map<std::string, Strand> strands_;  // strands with tasks or with a running one
  std::deque<std::string> ready_;          // strands that have a task and do not run
  std::multimap<Nanos, std::pair<std::string, Task>> delayed_;
  std::vector<Thread> idle_;  // the thread that waited last is woken first: its caches are warm
  std::optional<ClockKeeper> clock_keeper_;
  std::optional<Thread> woken_;  // is about to call next(), which checks everything
};

}  // namespace sluice::control
