// Reactors for tests: posted tasks wait in a queue until the test runs them.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "base/reactors.h"

namespace sluice::lun {

class TestReactors : public Reactors {
 public:
  explicit TestReactors(unsigned count) : count_(count) {}
  unsigned count() const override { return count_; }
  unsigned current() const override { return current_; }
  void post(unsigned reactor, std::function<void()> task) override {
    queue_.emplace_back(reactor, std::move(task));
  }

  size_t queued() const { return queue_.size(); }
  void run() {
    while (!queue_.empty()) {
      auto [reactor, task] = std::move(queue_.front());
      queue_.pop_front();
      current_ = reactor;
      task();
    }
  }

 private:
  unsigned count_;
  unsigned current_ = 0;
  std::deque<std::pair<unsigned, std::function<void()>>> queue_;
};

}  // namespace sluice::lun
