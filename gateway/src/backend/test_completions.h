// An Aio for tests that collects what complete() reports, in order, from any thread.
#pragma once

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "base/aio.h"

namespace sluice::backend {

class Completions final : public Aio {
 public:
  void submit(AioOp&) override { std::abort(); }
  void complete(AioOp& op, int32_t result) override {
    const std::lock_guard lock(mutex_);
    op.result = result;
    done_.push_back(&op);
    changed_.notify_all();
  }
  // Waits for the next completion.
  AioOp& next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return taken_ < done_.size(); });
    return *done_[taken_++];
  }
  std::vector<AioOp*> all() {
    const std::lock_guard lock(mutex_);
    return done_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<AioOp*> done_;
  size_t taken_ = 0;
};

}  // namespace sluice::backend
