// When the desired state goes to disk (gateway/decisions/control-plane-client.md). A failover
// of many volumes brings many updates, so the file may be a second older than what is applied: the
// records beside the data are not. A change that closes access is written at once, and acknowledged
// only then: a gateway that is killed and starts without a control plane would otherwise open that
// access again.
//
// Threads: any.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/clock.h"
#include "control/volume/turns.h"

namespace sluice::control {

class DesiredSaver {
 public:
  // `save` writes what is held, and gives its version; a failure is its to log.
  DesiredSaver(Turns& turns, std::function<uint64_t()> save,
               std::function<void(uint64_t version)> saved)
      : turns_(turns), save_(std::move(save)), saved_(std::move(saved)) {}

  void soon() {
    if (waits_.exchange(true)) return;
    const Nanos rest = std::max<Nanos>(0, saved_at_ + kRest - boot_time());
    turns_.post(kLane, [this] { run(); }, rest);
  }
  void at_once() {
    waits_ = true;
    turns_.post(kLane, [this] { run(); });
  }
  // Nothing runs any more.
  void last() {
    if (waits_) run();
  }

 private:
  static constexpr Nanos kRest = kSecond;  // between two savings
  static constexpr const char* kLane = "save";

  void run() {
    waits_ = false;
    saved_at_ = boot_time();
    saved_(save_());
  }

  Turns& turns_;
  const std::function<uint64_t()> save_;
  const std::function<void(uint64_t)> saved_;
  std::atomic<bool> waits_{false};
  std::atomic<Nanos> saved_at_{0};
};

}  // namespace sluice::control
