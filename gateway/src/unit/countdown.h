// Runs a function when several other tasks, possibly on other reactors, are finished. The calls are
// explicit, not in destructors: tasks that a reactor drops at shutdown must not run it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

namespace sluice::lun {

class Countdown {
 public:
  // The count includes the creator, which calls through() after it has begun all tasks.
  explicit Countdown(std::function<void()> last) : last_(std::move(last)) {}
  void begin() { left_.fetch_add(1, std::memory_order_relaxed); }
  void through() {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) last_();
  }

 private:
  std::atomic<unsigned> left_{1};
  std::function<void()> last_;
};

}  // namespace sluice::lun
