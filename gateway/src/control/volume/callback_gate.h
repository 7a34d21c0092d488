// Guards callbacks from threads that may outlive the object that they call: threads that wait for
// Ceph, lock servers, reactors. After close() the callbacks do nothing.
#pragma once

#include <mutex>
#include <shared_mutex>

namespace sluice::control {

class CallbackGate {
 public:
  // Runs `call` unless closed. `call` must neither block nor use this object.
  template <class Call>
  void run(Call&& call) {
    const std::shared_lock lock(mutex_);
    if (open_) call();
  }
  // Returns when no call is running.
  void close() {
    const std::unique_lock lock(mutex_);
    open_ = false;
  }

 private:
  std::shared_mutex mutex_;
  bool open_ = true;
};

}  // namespace sluice::control
