#include "net/watchdog.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "base/limits.h"
#include "base/log.h"
#include "base/stall.h"

namespace sluice::net {
namespace {

// No handlers, no core file, no waiting for whoever hangs.
[[noreturn]] void end_process(size_t reactor) {
  log::last_words("a reactor hangs, the gateway kills itself",
                  {{"reactor", reactor}, {"seconds", limits::kWatchdogLimit / kSecond}});
  ::kill(::getpid(), SIGKILL);
  ::_exit(128 + SIGKILL);  // process 1 of a container is deaf to signals of its own
}

}  // namespace

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
  const std::chrono::nanoseconds span(limits::kWatchdogLook);
  while (!wake_.wait_for(lock, span, [this] { return stopping_; })) {
    const Nanos now = clock_now();
    for (size_t i = 0; i < reactors_.size(); ++i) {
      // One that has ended turns no more.
      const bool alive = reactors_[i]->alive();
      if (checks[i].stopped(now, reactors_[i]->counters().loops) && alive) end_process(i);
    }
  }
}

}  // namespace sluice::net
