// The scheduling decisions of executor.h: which task runs next, how threads wait, which one is
// woken, and when a thread starts or ends.
//
// - Threads are woken or started one at a time, and only for work that no awake thread will take.
//   Otherwise hundreds of volumes with simultaneous tasks would wake many threads, which would all
//   wait for one mutex.
// - One waiting thread is the clock keeper: it waits until the next delayed task is due. The others
//   wait until they are woken. A thread that runs a task may take long and counts as absent. So it
//   has another thread woken or started if more tasks can run or there is no clock keeper.
// - The group with the fewest running tasks is next. A group without a running task may always have
//   a thread. It may have another one while `its running tasks + all running tasks < 2 * threads`.
//   So each group that hangs takes half of the threads that the others left, and at least one.
//
// It has no threads, mutex or clock of its own. The caller serializes all calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace sluice {

class ExecutorQueue {
 public:
  using Task = std::function<void()>;
  using Thread = size_t;  // index, from 0

  // Where a task belongs.
  struct Strand {
    std::string group;      // tasks that may hang together
    std::string name = {};  // empty: the task runs in parallel with all others of the group
  };
  enum class Where : uint8_t { kLast, kFirst };
  static constexpr size_t kNoBound = SIZE_MAX;

  // What a thread does next.
  struct Next {
    enum class What : uint8_t { kRun, kWait, kEnd } what = What::kWait;
    Task task = nullptr;  // kRun
    Strand strand = {};
    std::optional<Nanos> until = {};  // kWait: at most until then, or until it is woken
  };
  // A thread to wake, or to start.
  struct Wake {
    Thread thread = 0;
    bool starts = false;
    bool operator==(const Wake&) const = default;
  };

  // `threads`: the most for one group, and the most that stay idle.
  explicit ExecutorQueue(unsigned threads) : most_running_(2 * threads), most_idle_(threads) {}

  // The task runs at `due` at the earliest (possibly `now`), after the earlier tasks of its strand.
  // kFirst: before all waiting tasks of the group; for tasks without a strand and delay. False: at
  // least `bound` tasks of the group wait, not counting delayed ones. `task` is then unchanged.
  bool post(const Strand& strand, Task& task, Where where, size_t bound, Nanos due, Nanos now);
  // Called by a thread that begins, was woken, has waited long enough or has finished its task.
  Next next(Thread thread, Nanos now);
  // A thread that was to start could not. Its tasks wait for another thread, or for the next
  // wake().
  void not_started(Thread thread);
  void ended(const Strand& strand);  // called before next() by the thread that ran the task
  // Call it after post() and next(), unless the thread waits.
  std::optional<Wake> wake();

  // From now on no thread waits, and tasks that are not due yet never begin.
  void finish();
  // From now on no task begins.
  void end() { state_ = State::kEnded; }
  // Removes all waiting tasks, when no task runs. The caller destroys them, which may take long.
  std::vector<Task> take_all();

  size_t threads() const { return threads_ - free_.size(); }

 private:
  enum class State : uint8_t { kOpen, kFinishing, kEnded };
  struct StrandTasks {
    std::deque<Task> tasks;
    bool running = false;
  };
  // A task without a strand, or a strand that has a task and does not run.
  struct Ready {
    std::string strand;
    Task task;
  };
  struct Group {
    std::deque<Ready> ready;
    std::map<std::string, StrandTasks> strands;  // with tasks, or with a running one
    size_t waiting = 0;                          // tasks
    unsigned running = 0;
    uint64_t offered = 0;  // number of the offer
  };
  using Groups = std::map<std::string, Group>;
  struct ClockKeeper {
    Thread thread = 0;
    Nanos until = 0;
  };

  void put(const Strand& strand, Task task, Where where);
  void release_due(Nanos now);
  void offer(Groups::iterator group);
  void withdraw(const Group& group) { offered_.erase({group.running, group.offered}); }
  bool can_run() const;
  Next begin();
  Next wait(Thread thread);
  Next end_thread(Thread thread);
  bool clock_is_kept() const;
  void waits_no_more(Thread thread);

  const unsigned most_running_;
  const size_t most_idle_;
  State state_ = State::kOpen;
  Groups groups_;  // with waiting or running tasks
  // Groups with ready tasks, by their running tasks and the number of the offer.
  std::map<std::pair<unsigned, uint64_t>, Groups::iterator> offered_;
  uint64_t offers_ = 0;
  unsigned running_ = 0;
  std::multimap<Nanos, std::pair<Strand, Task>> delayed_;

  size_t threads_ = 0;        // indices in use or free
  std::vector<Thread> free_;  // indices of ended threads
  std::vector<Thread> idle_;  // the thread that waited last is woken first: its caches are warm
  std::optional<ClockKeeper> clock_keeper_;
  std::optional<Thread> woken_;  // is about to call next(), which checks everything
};

}  // namespace sluice
