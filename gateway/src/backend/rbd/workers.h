// Threads for what waits for Ceph: opening, locking, resizing, closing. A reactor hands such work
// over and goes on; a control thread waits for it, for a bounded time.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
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
  // Threads are made when they are needed, `threads` at most.
  explicit Workers(unsigned threads) : threads_(threads) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  // The process's own, limits::kImageThreads. At the end of the process what was posted has
  // limits::kImageCloses to end.
  static Workers& instance();

  // False: limits::kMaxImageTasks wait already, `task` was dropped.
  bool post(std::function<void()> task);
  // The same, before all that waits: for the next step of what was begun, which would else wait for
  // the first steps of all others.
  bool post_next(std::function<void()> task);
  // Beyond that bound, too: for what somebody waits for and an earlier task has paid for, as an
  // image that was opened must close.
  void post_always(std::function<void()> task);

  // Runs `work`, which returns a Result<T>, on a worker and waits for it, `bound` at most. What
  // comes later is destroyed there.
  template <class T>
  Result<T> run(const std::string& name, Nanos bound, std::function<Result<T>()> work) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    std::future<Result<T>> result = promise->get_future();
    const bool taken = post([promise, work = std::move(work)] { promise->set_value(work()); });
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
  // Outlives the process's statics where a thread hangs in Ceph.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> tasks;
    unsigned threads = 0;
    unsigned idle = 0;
    bool stopping = false;
  };
  void add_locked(std::function<void()> task, bool next = false);
  static void work(const std::shared_ptr<Shared>& shared);

  const unsigned threads_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace sluice::rbd
