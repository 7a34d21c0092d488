#include "rbd/workers.h"

#include <chrono>

namespace sluice::rbd {

Workers& Workers::instance() {
  static Workers workers(limits::kImageThreads);
  return workers;
}

bool Workers::post(std::function<void()> task) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->tasks.size() >= limits::kMaxImageTasks) return false;
  add_locked(std::move(task));
  return true;
}

bool Workers::post_next(std::function<void()> task) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->tasks.size() >= limits::kMaxImageTasks) return false;
  add_locked(std::move(task), true);
  return true;
}

void Workers::post_always(std::function<void()> task) {
  const std::lock_guard lock(shared_->mutex);
  add_locked(std::move(task));
}

void Workers::add_locked(std::function<void()> task, bool next) {
  shared_->tasks.insert(next ? shared_->tasks.begin() : shared_->tasks.end(), std::move(task));
  if (shared_->idle < shared_->tasks.size() && shared_->threads < threads_) {
    ++shared_->threads;
    std::thread([shared = shared_] { work(shared); }).detach();
  }
  shared_->changed.notify_one();
}

void Workers::work(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    ++shared->idle;
    shared->changed.wait(lock, [&] { return !shared->tasks.empty() || shared->stopping; });
    --shared->idle;
    if (shared->tasks.empty()) break;
    {
      const std::function<void()> task = std::move(shared->tasks.front());
      shared->tasks.pop_front();
      lock.unlock();
      task();
    }
    lock.lock();
  }
  --shared->threads;
  shared->changed.notify_all();
}

// Images that were being closed give up their locks, so that the next process need not wait.
bool Workers::stop(Nanos bound) {
  std::unique_lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->changed.notify_all();
  return shared_->changed.wait_for(lock, std::chrono::nanoseconds(bound),
                                   [&] { return shared_->threads == 0; });
}

}  // namespace sluice::rbd
