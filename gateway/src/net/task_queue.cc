#include "net/task_queue.h"

#include <utility>

namespace sluice::net {

void TaskQueue::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(task));
  }
  wakeup_.wake();
}

void TaskQueue::run() {
  {
    const std::lock_guard lock(mutex_);
    running_.swap(posted_);
  }
  for (auto& task : running_) task();
  running_.clear();
}

}  // namespace sluice::net
