// Waits for answers of several threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "base/clock.h"

namespace sluice::net {

// Waits for all reactors to answer, for a bounded time. The posted tasks share it, because they may
// outlive the wait.
class Gather {
 public:
  explicit Gather(size_t expected) : missing_(expected) {}
  void arrive() {
    const std::lock_guard lock(mutex_);
    --missing_;
    arrived_.notify_all();
  }
  bool wait(Nanos bound) {
    std::unique_lock lock(mutex_);
    return arrived_.wait_for(lock, std::chrono::nanoseconds(bound), [&] { return missing_ == 0; });
  }
  std::mutex& mutex() { return mutex_; }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  size_t missing_;
};

}  // namespace sluice::net
