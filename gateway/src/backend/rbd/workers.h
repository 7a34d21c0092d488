// Threads for what waits for Ceph: opening, locking, resizing, closing. A reactor hands such work
// over and goes on; a control thread waits for it, for a bounded time.
//
// Each task is of a group: what may hang together, as a rule a pool. One that hangs keeps no other
// from threads (gateway/decisions/ceph.md).
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

  // Threads are made when they are needed. A group that is alone gets `threads`; all together get
  // twice as many, shared, and each group always one.
  explicit Workers(unsigned threads) : shared_(std::make_shared<Shared>(2 * threads)) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  // The process's own, limits::kImageThreads. At the end of the process what was posted has
  // limits::kImageCloses to end.
  static Workers& instance();

  // False: limits::kMaxImageTasks of the group wait already, `task` was dropped.
  bool post(const std::string& group, Task task);
  // The same, before all of its group that waits: for the next step of what was begun, which would
  // else wait for the first steps of all others.
  bool post_next(const std::string& group, Task task);
  // Beyond that bound, too: for what somebody waits for and an earlier task has paid for, as an
  // image that was opened must close.
  void post_always(const std::string& group, Task task);

  // Runs `work`, which returns a Result<T>, on a worker and waits for it, `bound` at most. What
  // comes later is destroyed there.
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

  // No thread stays for what may come. False: what was posted has not ended within `bound`.
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
  // Outlives the process's statics where a thread hangs in Ceph.
  struct Shared {
    explicit Shared(unsigned most_running) : most(most_running) {}
    const unsigned most;  // running; beyond it each group may have one
    std::mutex mutex;
    std::condition_variable changed;
    Groups groups;            // with something to do
    std::deque<Ready> ready;  // counted as running: there is a thread for each
    unsigned running = 0;
    unsigned threads = 0;
    unsigned idle = 0;  // new ones among them
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
