// Checks whether another client opened an image; it gets the lock only after the image is closed
// here. A long job checks this regularly and closes the image.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/limits.h"
#include "rbd/image.h"

namespace sluice::control {

class LockContentionWatcher {
 public:
  explicit LockContentionWatcher(const rbd::Image& image)
      : image_(image), thread_([this] { work(); }) {}
  ~LockContentionWatcher() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  LockContentionWatcher(const LockContentionWatcher&) = delete;
  LockContentionWatcher& operator=(const LockContentionWatcher&) = delete;

  bool is_contended() const { return contended_; }

 private:
  // Frequent enough for a client that waits for the lock: it waits limits::kImageHandover.
  static constexpr Nanos kEvery = 500 * kMillisecond;
  static_assert(2 * kEvery < limits::kImageHandover);

  void work() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      lock.unlock();
      check_watchers();
      lock.lock();
      changed_.wait_for(lock, std::chrono::nanoseconds(kEvery), [this] { return ended_; });
    }
  }

  // A watcher that was present at the beginning may be a dead client that has not timed out in Ceph
  // yet.
  void check_watchers() {
    const Result<std::vector<std::string>> watchers = image_.watchers();
    if (!watchers) return;
    std::set<std::string> now(watchers.value().begin(), watchers.value().end());
    for (const std::string& client : now) {
      if (before_ && !before_->contains(client)) contended_ = true;
    }
    before_ = std::move(now);
  }

  const rbd::Image& image_;
  std::atomic<bool> contended_ = false;
  std::optional<std::set<std::string>> before_;  // used by the thread only
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;  // last, because it uses the other members
};

}  // namespace sluice::control
