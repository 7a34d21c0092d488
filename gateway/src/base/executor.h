// Threads for work that may wait for disks, Ceph or other processes. Reactors and control threads
// post such work and continue.
//
// Each task belongs to a group of tasks that may hang together: a pool, a Ceph client, a directory.
// Within a group, tasks of one strand (a volume) run one after the other, in the order of their
// posts. All other tasks run in parallel.
//
// Threads are started on demand:
// - A single group gets at most Setup::threads.
// - A group with tasks always gets one thread, even if all tasks of all other groups hang.
// - All groups together get at most 2 * Setup::threads, and one more for each group with a running
//   task. One further thread may wait for delayed tasks.
// - At most Setup::threads + 1 threads stay idle; a thread beyond that ends.
//
// If no thread can be started, tasks wait until one of the group's threads, or of another group, is
// free, or until the next post.
//
// Threads: any may post.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/detached_thread.h"
#include "base/executor_queue.h"

namespace sluice {

class Executor {
 public:
  using Task = ExecutorQueue::Task;
  using Strand = ExecutorQueue::Strand;
  enum class AtEnd : uint8_t { kDropQueued, kRunQueued };
  static constexpr Nanos kForever = std::numeric_limits<Nanos>::max();

  struct Setup {
    unsigned threads = 1;                           // of one group
    size_t queued_tasks = ExecutorQueue::kNoBound;  // of one group: the bound of try_post()
    AtEnd at_end = AtEnd::kDropQueued;
    Nanos destructor_waits = kForever;  // for running tasks
    StartThread start = start_detached_thread;
  };
  explicit Executor(const Setup& setup);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  ~Executor() { stop(setup_.destructor_waits); }

  // Runs `task` after `delay`, and after the earlier tasks of its strand. It takes any number of
  // tasks: the caller bounds it, or the task completes an earlier one.
  void post(const Strand& strand, Task task, Nanos delay = 0);
  // False: Setup::queued_tasks of the group are queued, and `task` was dropped.
  [[nodiscard]] bool try_post(const Strand& strand, Task task);
  // As try_post(), but ahead of all queued tasks of the group: for the next step of an operation in
  // progress, which would otherwise wait for the first steps of all others.
  [[nodiscard]] bool try_post_next(const std::string& group, Task task);

  // Drops delayed tasks. AtEnd::kDropQueued: also drops queued ones and those posted later.
  // kRunQueued: runs both. Waits until no task runs. False: some have not finished within `bound`;
  // they still use what they captured, but no longer this object. Not to be called by a task.
  bool stop(Nanos bound = kForever);

 private:
  struct Worker {
    std::condition_variable wake;
    bool woken = false;
  };
  // Outlives the executor if a thread hangs.
  struct Shared {
    Shared(unsigned threads, StartThread s) : start(s), queue(threads) {}
    const StartThread start;
    std::mutex mutex;
    ExecutorQueue queue;
    std::deque<Worker>
        workers;  // by ExecutorQueue::Thread; never removed, so a pointer stays valid
    bool stopping = false;
    std::condition_variable thread_ended;
  };
  using SharedPtr = std::shared_ptr<Shared>;
  // What to do once the mutex is released, because the woken thread needs it.
  struct Woken {
    Worker* worker = nullptr;  // null: nothing
    std::optional<ExecutorQueue::Thread> starts = {};
  };

  bool add(const Strand& strand, Task task, ExecutorQueue::Where where, size_t bound, Nanos delay);
  static Woken wake_locked(Shared& shared);
  static void carry_out(const SharedPtr& shared, const Woken& woken);
  static void wait(Shared& shared, Worker& self, std::optional<Nanos> until,
                   std::unique_lock<std::mutex>& lock);
  static void work(const SharedPtr& shared, ExecutorQueue::Thread self);

  const Setup setup_;
  const SharedPtr shared_;
};

}  // namespace sluice
