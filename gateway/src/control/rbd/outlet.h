// What leads from threads that wait for Ceph back into the control room. Such a thread may hang
// until long after that room is gone: once the outlet is shut, nothing of it gets through.
#pragma once

#include <mutex>
#include <shared_mutex>

namespace sluice::control {

class Outlet {
 public:
  // Runs `call`, which must not wait nor come here again, unless it is shut.
  template <class Call>
  void run(Call&& call) {
    const std::shared_lock lock(mutex_);
    if (open_) call();
  }
  // Returns once no call is under way.
  void shut() {
    const std::unique_lock lock(mutex_);
    open_ = false;
  }

 private:
  std::shared_mutex mutex_;
  bool open_ = true;
};

}  // namespace sluice::control
