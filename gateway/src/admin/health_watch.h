// Checks the media of all units about once a second (Unit::poll_health): a missing file or device
// makes its LUN NOT READY, until it is back.
//
// Threads: one of its own, because a check may block (a dead NFS server), and must delay neither
// reloads nor the shutdown.
#pragma once

#include <memory>

#include "nexus/exports.h"

namespace sluice::admin {

// Checks every unit once; logs changes.
void check_media(const lun::Exports& exports);

class HealthWatch {
 public:
  explicit HealthWatch(const lun::Exports& exports);
  HealthWatch(const HealthWatch&) = delete;
  HealthWatch& operator=(const HealthWatch&) = delete;
  ~HealthWatch();  // after stop()

  // False: the thread is blocked in a check and could not be ended. It still uses the exports, so
  // the process must end without destroying them.
  bool stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::admin
