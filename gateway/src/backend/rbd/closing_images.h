// Images that are being closed, of all clusters. An open of such an image waits until it is closed.
// Two clusters may have different images of the same name.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"

namespace sluice::rbd {

class ClosingImages {
 public:
  struct Name {
    std::string cluster;  // fsid; empty: the image was never open
    std::string path;     // pool[/namespace]/image
    auto operator<=>(const Name&) const = default;
  };

  // One per process. Never destroyed, because the executor's threads may outlive statics.
  static ClosingImages& instance() {
    static ClosingImages& all = *new ClosingImages;
    return all;
  }

  void add(const Name& name) {
    const std::lock_guard lock(mutex_);
    names_.insert(name);
  }
  void remove(const Name& name) {
    const std::lock_guard lock(mutex_);
    const auto at = names_.find(name);
    if (at != names_.end()) names_.erase(at);
    changed_.notify_all();
  }
  // False: it is not closed within `bound`.
  bool wait_for(const Name& name, Nanos bound) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::nanoseconds(bound),
                             [&] { return !names_.contains(name); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multiset<Name> names_;
};

}  // namespace sluice::rbd
