// Whether another client has come to open an image, whose lock it gets only once the image is
// closed here. Whoever has one open for hours looks now and then, and gives way.
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

class Wanted {
 public:
  explicit Wanted(const rbd::Image& image) : image_(image), thread_([this] { work(); }) {}
  ~Wanted() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Wanted(const Wanted&) = delete;
  Wanted& operator=(const Wanted&) = delete;

  bool elsewhere() const { return elsewhere_; }

 private:
  // Often enough for who waits for the lock as long as for one that is about to be given up.
  static constexpr Nanos kEvery = 500 * kMillisecond;
  static_assert(2 * kEvery < limits::kImageHandover);

  void work() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      lock.unlock();
      look();
      lock.lock();
      changed_.wait_for(lock, std::chrono::nanoseconds(kEvery), [this] { return ended_; });
    }
  }

  // Who was there from the beginning may be one that Ceph hasn't given up yet.
  void look() {
    const Result<std::vector<std::string>> watchers = image_.watchers();
    if (!watchers) return;
    std::set<std::string> now(watchers.value().begin(), watchers.value().end());
    for (const std::string& client : now) {
      if (before_ && !before_->contains(client)) elsewhere_ = true;
    }
    before_ = std::move(now);
  }

  const rbd::Image& image_;
  std::atomic<bool> elsewhere_ = false;
  std::optional<std::set<std::string>> before_;  // the thread's
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace sluice::control
