// Tasks that other threads post to a reactor. For rare events: each task allocates.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "net/wakeup.h"

namespace sluice::net {

class TaskQueue {
 public:
  explicit TaskQueue(Wakeup& wakeup) : wakeup_(wakeup) {}

  // Any thread. Tasks of one thread run in the order in which it posts them.
  void post(std::function<void()> task);
  // The reactor's thread: runs all tasks that were posted before the call.
  void run();

 private:
  Wakeup& wakeup_;
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;
  std::vector<std::function<void()>> running_;
};

}  // namespace sluice::net
