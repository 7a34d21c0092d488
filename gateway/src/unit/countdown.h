// Runs something once when a number of others, perhaps on other reactors, are through. Explicit,
// not by destructors: tasks that a reactor drops at shutdown must not wake anything.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

namespace sluice::lun {

class Countdown {
 public:
  // Counts the maker too: it calls through() once it has begun all that is to be waited for.
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
