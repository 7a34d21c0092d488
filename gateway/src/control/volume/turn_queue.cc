#include "control/volume/turn_queue.h"

namespace sluice::control {

void TurnQueue::post(const std::string& lane, Task task, Nanos due, Nanos now) {
  if (due > now) {
    delayed_.emplace(due, std::pair{lane, std::move(task)});
    return;
  }
  release_due(now);  // an immediate task must not overtake delayed ones that are due
  put(lane, std::move(task));
}

TurnQueue::Next TurnQueue::next(Thread thread, Nanos now) {
  if (woken_ == thread) woken_.reset();
  waits_no_more(thread);
  release_due(now);
  if (!ready_.empty()) {
    Next next;
    next.lane = std::move(ready_.front());
    ready_.pop_front();
    Lane& lane = lanes_[next.lane];
    next.task = std::move(lane.tasks.front());
    lane.tasks.pop_front();
    lane.running = true;
    return next;
  }
  if (clock_is_kept()) {
    idle_.push_back(thread);
    return {};
  }
  // The former clock keeper waits for a later time. That does no harm: it finds nothing to do.
  if (clock_keeper_) idle_.insert(idle_.begin(), clock_keeper_->thread);
  clock_keeper_ = {thread, delayed_.begin()->first};
  return {.until = clock_keeper_->until};
}

void TurnQueue::ended(const std::string& lane) {
  const auto at = lanes_.find(lane);
  at->second.running = false;
  if (at->second.tasks.empty()) {
    lanes_.erase(at);
  } else {
    ready_.push_back(lane);
  }
}

std::optional<TurnQueue::Thread> TurnQueue::wake() {
  if (woken_) return std::nullopt;  // it checks everything, then calls wake()
  if (ready_.empty() && clock_is_kept()) return std::nullopt;
  // Wakes the clock keeper itself if it waits too long or is the only thread.
  if (clock_keeper_ && (ready_.empty() || idle_.empty())) {
    woken_ = clock_keeper_->thread;
    clock_keeper_.reset();
  } else if (!idle_.empty()) {
    woken_ = idle_.back();
    idle_.pop_back();
  }
  return woken_;
}

void TurnQueue::clear() {
  delayed_.clear();
  ready_.clear();
  lanes_.clear();
}

void TurnQueue::put(const std::string& lane, Task task) {
  Lane& there = lanes_[lane];
  if (!there.running && there.tasks.empty()) ready_.push_back(lane);
  there.tasks.push_back(std::move(task));
}

void TurnQueue::release_due(Nanos now) {
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    auto& [lane, task] = delayed_.begin()->second;
    put(lane, std::move(task));
    delayed_.erase(delayed_.begin());
  }
}

bool TurnQueue::clock_is_kept() const {
  if (delayed_.empty()) return true;
  return clock_keeper_ && clock_keeper_->until <= delayed_.begin()->first;
}

void TurnQueue::waits_no_more(Thread thread) {
  if (clock_keeper_ && clock_keeper_->thread == thread) clock_keeper_.reset();
  std::erase(idle_, thread);
}

}  // namespace sluice::control
