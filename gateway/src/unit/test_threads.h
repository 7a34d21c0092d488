// Reactors for tests with threads: each thread runs its own queue.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "base/reactors.h"

namespace sluice::lun {

class ThreadedReactors : public Reactors {
 public:
  explicit ThreadedReactors(unsigned count) : queues_(count) {}
  unsigned count() const override { return static_cast<unsigned>(queues_.size()); }
  unsigned current() const override { return count(); }
  void post(unsigned reactor, std::function<void()> task) override {
    Queue& q = queues_[reactor];
    {
      const std::lock_guard lock(q.mutex);
      q.tasks.push_back(std::move(task));
    }
    q.changed.notify_one();
  }
  // Runs tasks until `done` returns true. It checks state of this thread, or state whose change is
  // followed by a post.
  template <class Done>
  void run(unsigned reactor, Done done) {
    Queue& q = queues_[reactor];
    while (!done()) {
      std::unique_lock lock(q.mutex);
      q.changed.wait(lock, [&q] { return !q.tasks.empty(); });
      std::function<void()> task = std::move(q.tasks.front());
      q.tasks.pop_front();
      lock.unlock();
      task();
    }
  }

 private:
  struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> tasks;
  };
  std::vector<Queue> queues_;
};

}  // namespace sluice::lun
