#include "control/volume/turns.h"

#include <chrono>
#include <ctime>
#include <utility>

namespace sluice::control {

Nanos boot_time() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

Turns::Turns(unsigned threads) {
  threads_.reserve(threads);
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

void Turns::post(const std::string& lane, std::function<void()> task, Nanos delay) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    delayed_.emplace(boot_time() + delay, std::pair{lane, std::move(task)});
  }
  changed_.notify_one();
}

void Turns::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  const std::lock_guard lock(mutex_);
  delayed_.clear();
  lanes_.clear();
}

Nanos Turns::release_due_locked() {
  const Nanos now = boot_time();
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    auto& [name, task] = delayed_.begin()->second;
    Lane& lane = lanes_[name];
    if (!lane.running && lane.tasks.empty()) ready_.push_back(name);
    lane.tasks.push_back(std::move(task));
    delayed_.erase(delayed_.begin());
  }
  return delayed_.empty() ? kSecond : delayed_.begin()->first - now;
}

void Turns::work() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Nanos wait = release_due_locked();
    if (ready_.empty()) {
      changed_.wait_for(lock, std::chrono::nanoseconds(wait));
      continue;
    }
    if (ready_.size() > 1) changed_.notify_one();
    const std::string name = std::move(ready_.front());
    ready_.pop_front();
    Lane& lane = lanes_[name];
    std::function<void()> task = std::move(lane.tasks.front());
    lane.tasks.pop_front();
    lane.running = true;
    lock.unlock();
    task();
    task = nullptr;  // what it holds may take a while to go
    lock.lock();
    lane.running = false;  // a reference into a map stays
    if (lane.tasks.empty()) {
      lanes_.erase(name);
    } else {
      ready_.push_back(name);
    }
  }
}

}  // namespace sluice::control
