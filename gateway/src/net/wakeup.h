// Ends the sleep of a reactor in its ring, from any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"

namespace sluice::net {

class SubmissionQueue;

class Wakeup {
 public:
  Wakeup() = default;
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  // Before the reactor's thread runs. Error: no file descriptor is left.
  Result<void> open();
  // Any thread. Takes no lock. Makes a system call only once until take().
  void wake();

  // --- the reactor's thread
  // The next wake() completes with CompletionKind::kWake; arm again then.
  void arm(SubmissionQueue& submissions);
  // Whether wake() was called since the last take(). Call it before the lists are read that callers
  // of wake() fill.
  bool take();

 private:
  int fd_ = -1;
  uint64_t value_ = 0;
  std::atomic<bool> woken_{false};
};

}  // namespace sluice::net
