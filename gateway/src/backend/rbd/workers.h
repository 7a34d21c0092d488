// Threads for work that waits for Ceph: opening, locking, resizing, closing. A reactor queues such
// work and continues; a control thread waits for it for a bounded time.
//
// Each task belongs to a group of tasks that may hang together, usually a pool. A group that hangs
// leaves threads to the others (gateway/decisions/ceph.md).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/failure.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/result.h"

namespace sluice::rbd {

class Workers {
 public:
  using Task = std::function<void()>;

  // Threads are created on demand. A single group gets `threads`; all groups together share twice
  // as many, and each group always gets at least one.
  explicit Workers(unsigned threads) : shared_(std::make_shared<Shared>(2 * threads)) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  // The process-wide workers, limits::kImageThreads. At the end of the process, queued tasks have
  // limits::kImageCloses to finish.
  static Workers& instance();

  // False: limits::kMaxImageTasks of the group are queued, and `task` was dropped.
  bool post(const std::string& group, Task task);
  // As post(), but ahead of all queued tasks of the group: for the next step of an operation in
  // progress, which would otherwise wait for the first steps of all others.
  bool post_next(const std::string& group, Task task);
  // Without that limit: for tasks that complete an earlier one, such as closing an image that was
  // opened.
  void post_always(const std::string& group, Task task);

  // Runs `work`, which returns a Result<T>, on a worker and waits for at most `bound`. A later
  // result is destroyed on the worker.
  template <class T>
  Result<T> run(const std::string& group, const std::string& name, Nanos bound,
                std::function<Result<T>()> work) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    std::future<Result<T>> result = promise->get_future();
    const bool taken =
        post(group, [promise, work = std::move(work)] { promise->set_value(work()); });
    if (!taken) return backend::fail(name, "too much waits for Ceph already", "try again");
    if (result.wait_for(std::chrono::nanoseconds(bound)) != std::future_status::ready) {
      return backend::fail(name,
                           "Ceph didn't answer within " + std::to_string(bound / kSecond) + " s",
                           "look at `ceph -s`: placement groups may be inactive");
    }
    return result.get();
  }

  // Ends idle threads. False: queued tasks have not finished within `bound`.
  bool stop(Nanos bound);

  ~Workers() { stop(limits::kImageCloses); }

 private:
  struct Group {
    std::deque<Task> waiting;
    unsigned running = 0;
  };
  using Groups = std::map<std::string, Group>;
  struct Ready {
    Groups::iterator group;
    Task task;
  };
  // Outlives the process's statics if a thread hangs in Ceph.
  struct Shared {
    explicit Shared(unsigned most_running) : most(most_running) {}
    const unsigned most;  // running threads; beyond this each group may have one
    std::mutex mutex;
    std::condition_variable changed;
    Groups groups;            // groups with tasks
    std::deque<Ready> ready;  // counted as running: each has a thread
    unsigned running = 0;
    unsigned threads = 0;
    unsigned idle = 0;  // including new threads
    bool stopping = false;
  };
  enum class Where : uint8_t { kFirst, kLast };
  bool add(const std::string& group, Task task, Where where, size_t bound);
  static void begin_locked(const std::shared_ptr<Shared>& shared);
  static Groups::iterator next_locked(Shared& shared);
  static void work(const std::shared_ptr<Shared>& shared);

  const std::shared_ptr<Shared> shared_;
};

}  // namespace sluice::rbd
