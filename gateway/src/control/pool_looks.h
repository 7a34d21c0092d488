// Probes storage pools and reports their state. Each pool has its own lane, because a filesystem
// may hang.
//
// Threads: any.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "control/volume/turns.h"
#include "control/volume/volumes.h"

namespace sluice::control {

class PoolLooks {
 public:
  // `tell`: called on any thread, also later when a pool reports a change by itself.
  PoolLooks(Volumes& volumes, Turns& turns, std::function<void(const wire::PoolObserved&)> tell)
      : volumes_(volumes), turns_(turns), tell_(std::move(tell)) {}

  // A pool whose probe is running is probed once more afterwards, because it may have changed.
  void look(const std::vector<std::string>& uids);

 private:
  void begin(const std::string& uid);
  void look_now(const std::string& uid);

  Volumes& volumes_;
  Turns& turns_;
  const std::function<void(const wire::PoolObserved&)> tell_;
  std::mutex mutex_;
  std::map<std::string, bool> under_way_;  // by uid: whether another probe follows
};

}  // namespace sluice::control
