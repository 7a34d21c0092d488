#include "control/volume/strand_executor.h"

#include <chrono>
#include <utility>

#include "base/boot_clock.h"

namespace sluice::control {

StrandExecutor::StrandExecutor(unsigned threads) : workers_(threads) {
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].thread = std::thread([this, i] { work(i); });
  }
}

void StrandExecutor::post(const std::string& strand, std::function<void()> task, Nanos delay) {
  Worker* woken = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    const Nanos now = boot_clock_now();
    queue_.post(strand, std::move(task), now + delay, now);
    woken = wake_locked();
  }
  if (woken != nullptr) woken->wake.notify_one();
}

void StrandExecutor::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  for (Worker& worker : workers_) worker.wake.notify_one();
  for (Worker& worker : workers_) {
    if (worker.thread.joinable()) worker.thread.join();
  }
  const std::lock_guard lock(mutex_);
  queue_.clear();
}

StrandExecutor::Worker* StrandExecutor::wake_locked() {
  const std::optional<StrandQueue::Thread> woken = queue_.wake();
  if (!woken) return nullptr;
  workers_[*woken].woken = true;
  return &workers_[*woken];
}

void StrandExecutor::wait(Worker& self, std::optional<Nanos> until,
                          std::unique_lock<std::mutex>& lock) {
  const auto called = [&] { return self.woken || stopping_; };
  if (until) {
    self.wake.wait_for(lock, std::chrono::nanoseconds(*until - boot_clock_now()), called);
  } else {
    self.wake.wait(lock, called);
  }
  self.woken = false;
}

void StrandExecutor::work(size_t self) {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    StrandQueue::Next next = queue_.next(self, boot_clock_now());
    if (!next.task) {
      wait(workers_[self], next.until, lock);
      continue;
    }
    Worker* woken = wake_locked();
    lock.unlock();
    if (woken != nullptr) woken->wake.notify_one();
    next.task();
    next.task = nullptr;  // destroying its captures may take long, so it happens without the mutex
    lock.lock();
    queue_.ended(next.strand);
  }
}

}  // namespace sluice::control
