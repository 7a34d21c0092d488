// A reactor without I/O for tests: a thread that runs posted tasks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "base/reactors.h"

namespace sluice::control {

class OneReactor final : public Reactors {
 public:
  OneReactor() : thread_([this] { run(); }) {}
  ~OneReactor() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  unsigned count() const override { return 1; }
  unsigned current() const override { return std::this_thread::get_id() == id_ ? 0 : 1; }
  void post(unsigned, std::function<void()> task) override {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    id_ = std::this_thread::get_id();
    for (;;) {
      changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::atomic<std::thread::id> id_;
  std::thread thread_;
};

}  // namespace sluice::control
