#include "net/watchdog.h"

#include <pthread.h>

#include <chrono>

#include "base/boot_clock.h"
#include "base/end_process.h"
#include "base/limits.h"
#include "base/stall.h"

namespace sluice::net {
Watchdog::Watchdog(std::vector<const Reactor*> reactors)
    : reactors_(std::move(reactors)), thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Watchdog::run() {
  pthread_setname_np(pthread_self(), "watchdog");
  std::vector<PulseCheck> checks(reactors_.size());
  std::unique_lock lock(mutex_);
  const std::chrono::nanoseconds span(limits::kWatchdogInterval);
  while (!wake_.wait_for(lock, span, [this] { return stopping_; })) {
    const Nanos now = boot_clock_now();
    for (size_t i = 0; i < reactors_.size(); ++i) {
      // One that has ended turns no more.
      const bool alive = reactors_[i]->alive();
      if (!checks[i].stopped(now, reactors_[i]->counters().loops) || !alive) continue;
      end_process("a reactor hangs, the gateway kills itself",
                  {{"reactor", i}, {"seconds", limits::kWatchdogLimit / kSecond}});
    }
  }
}

}  // namespace sluice::net
