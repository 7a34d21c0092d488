// What turns.h decides: which task is next, who waits how, and who is woken. Threads that wait are
// woken one by one, for work that nobody who is awake will take: of hundreds of volumes that have
// their turns at once each would wake another one, and all would stand in line for one mutex.
//
// One of those who wait keeps the clock: it waits until the next delayed task is due, the others
// for as long as nobody wakes them. Who runs a task may be at it for long, so it counts for
// nothing: who goes to run one has another one woken where more is ready, or nobody keeps the
// clock.
//
// No threads, mutex or clock of its own: one call at a time.
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

class TurnQueue {
 public:
  using Task = std::function<void()>;
  using Thread = size_t;  // from 0

  // What a thread does next: runs `task` of `lane`, or waits until it is woken, and not beyond
  // `until` if that is given.
  struct Next {
    Task task = nullptr;
    std::string lane = {};
    std::optional<Nanos> until = {};
  };

  // To be run at `due`, which may be now, after the lane's earlier ones.
  void post(const std::string& lane, Task task, Nanos due, Nanos now);
  // A thread begins, has been woken, has waited for long enough, or has ended its task.
  Next next(Thread thread, Nanos now);
  void ended(const std::string& lane);  // by who calls next() then
  // After post(), and after a next() that gave a task: who is to be woken, if anybody.
  std::optional<Thread> wake();
  // Drops all tasks.
  void clear();

 private:
  struct Lane {
    std::deque<Task> tasks;
    bool running = false;
  };
  struct ClockKeeper {
    Thread thread = 0;
    Nanos until = 0;
  };

  void put(const std::string& lane, Task task);
  void release_due(Nanos now);
  bool clock_is_kept() const;
  void waits_no_more(Thread thread);

  std::map<std::string, Lane> lanes_;  // with tasks or running
  std::deque<std::string> ready_;      // lanes that have a task and don't run
  std::multimap<Nanos, std::pair<std::string, Task>> delayed_;
  std::vector<Thread> idle_;  // who waited last is woken first: its caches are warm
  std::optional<ClockKeeper> clock_keeper_;
  std::optional<Thread> woken_;  // on its way to next(), which will look at everything
};

}  // namespace sluice::control
