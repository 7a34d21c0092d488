// Looks after the media of all units about once a second (Unit::poll_health): a vanished file or
// device makes its LUN NOT READY, and ready again when it is back.
//
// Threads: one of its own, because a look may block (a dead NFS server), and that must hold up
// neither reloads nor the end.
#pragma once

#include <memory>

#include "nexus/exports.h"

namespace sluice::admin {

// One look at every unit; logs what changed.
void look_at_media(const lun::Exports& exports);

class HealthWatch {
 public:
  explicit HealthWatch(const lun::Exports& exports);
  HealthWatch(const HealthWatch&) = delete;
  HealthWatch& operator=(const HealthWatch&) = delete;
  ~HealthWatch();  // after stop()

  // False: the thread is stuck in a look and could not be ended. It uses the exports still: the
  // process must end without destroying them.
  bool stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::admin
