// Checks the media of all units about once a second (Unit::poll_health): a missing file or device
// makes its LUN NOT READY, until it is back.
//
// A check may hang with its medium (a dead NFS server). Checks of media that hang together
// (Backend::hangs_with) run one after the other; such a group delays neither the checks of other
// media nor reloads nor the shutdown. A unit whose check has not returned is not checked again.
//
// Also finds units that are stuck (Unit::poll_progress) every limits::kStuckPoll, on a thread that
// waits for no medium. One line of the log reports all units of a medium.
//
// Threads: those of an executor of its own, one for each group whose checks run.
#pragma once

#include <memory>

#include "base/clock.h"
#include "nexus/exports.h"

namespace sluice::admin {

// Checks every unit once; logs changes. Waits for all media.
void check_media(const lun::Exports& exports);

class HealthWatch {
 public:
  // `period`: from one round of checks to the next.
  explicit HealthWatch(const lun::Exports& exports, Nanos period = kSecond);
  HealthWatch(const HealthWatch&) = delete;
  HealthWatch& operator=(const HealthWatch&) = delete;
  ~HealthWatch();  // after stop()

  // Waits for running checks, for a bounded time. False: one hangs. It still uses its unit, so the
  // process must end without destroying units and exports.
  bool stop();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace sluice::admin
