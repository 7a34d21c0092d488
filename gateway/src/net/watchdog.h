// Kills the process when one of its reactors hangs (DESIGN R6). Otherwise that reactor could
// execute its commands later, after hosts have repeated them on another path.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "net/reactor.h"

namespace sluice::net {

class Watchdog {
 public:
  // The reactors run, and outlive this object.
  explicit Watchdog(std::vector<const Reactor*> reactors);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;

 private:
  void run();

  const std::vector<const Reactor*> reactors_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sluice::net
