// Decides when the desired state is written to disk (gateway/decisions/control-plane-client.md). A
// failover brings many updates, so the file may lag the applied state by a second; records beside
// the data never lag. A change that closes access is written immediately and acknowledged
// afterwards. Otherwise a gateway that is killed and restarts without a control plane would open
// that access again.
//
// Threads: any.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/boot_clock.h"
#include "base/clock.h"
#include "base/executor.h"

namespace sluice::control {

class DesiredSaver {
 public:
  // `save` writes the held state, logs a failure and returns the version that it wrote.
  DesiredSaver(Executor& executor, std::function<uint64_t()> save,
               std::function<void(uint64_t version)> saved)
      : executor_(executor), save_(std::move(save)), saved_(std::move(saved)) {}

  void soon() {
    if (waits_.exchange(true)) return;
    const Nanos rest = std::max<Nanos>(0, saved_at_ + kRest - boot_clock_now());
    executor_.post(strand(), [this] { run(); }, rest);
  }
  void at_once() {
    waits_ = true;
    executor_.post(strand(), [this] { run(); });
  }
  // Writes a pending change. The caller ensures that no task runs any more.
  void last() {
    if (waits_) run();
  }

 private:
  static constexpr Nanos kRest = kSecond;  // minimum interval between two deferred writes
  // A group of its own: neither a pool nor the application of the desired state waits for this
  // disk.
  static Executor::Strand strand() { return {"desired state on disk", "save"}; }

  void run() {
    waits_ = false;
    saved_at_ = boot_clock_now();
    saved_(save_());
  }

  Executor& executor_;
  const std::function<uint64_t()> save_;
  const std::function<void(uint64_t)> saved_;
  std::atomic<bool> waits_{false};
  std::atomic<Nanos> saved_at_{0};
};

}  // namespace sluice::control
