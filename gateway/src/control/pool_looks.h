// Looks at storage pools and tells how they are found, each in a lane of its own: a filesystem may
// hang.
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
  // `tell`: on any thread, and again when a pool has news by itself.
  PoolLooks(Volumes& volumes, Turns& turns, std::function<void(const wire::PoolObserved&)> tell)
      : volumes_(volumes), turns_(turns), tell_(std::move(tell)) {}

  // One that is being looked at already is looked at once more after that: it may have changed.
  void look(const std::vector<std::string>& uids);

 private:
  void begin(const std::string& uid);
  void look_now(const std::string& uid);

  Volumes& volumes_;
  Turns& turns_;
  const std::function<void(const wire::PoolObserved&)> tell_;
  std::mutex mutex_;
  std::map<std::string, bool> under_way_;  // by uid: whether another look is to follow
};

}  // namespace sluice::control
