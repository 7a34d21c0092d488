#include "control/volume/strand_queue.h"

namespace sluice::control {

void StrandQueue::post(const std::string& strand, Task task, Nanos due, Nanos now) {
  if (due > now) {
    delayed_.emplace(due, std::pair{strand, std::move(task)});
    return;
  }
  release_due(now);  // an immediate task must not overtake delayed ones that are due
  put(strand, std::move(task));
}

StrandQueue::Next StrandQueue::next(Thread thread, Nanos now) {
  if (woken_ == thread) woken_.reset();
  waits_no_more(thread);
  release_due(now);
  if (!ready_.empty()) {
    Next next;
    next.strand = std::move(ready_.front());
    ready_.pop_front();
    Strand& strand = strands_[next.strand];
    next.task = std::move(strand.tasks.front());
    strand.tasks.pop_front();
    strand.running = true;
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

void StrandQueue::ended(const std::string& strand) {
  const auto at = strands_.find(strand);
  at->second.running = false;
  if (at->second.tasks.empty()) {
    strands_.erase(at);
  } else {
    ready_.push_back(strand);
  }
}

std::optional<StrandQueue::Thread> StrandQueue::wake() {
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

void StrandQueue::clear() {
  delayed_.clear();
  ready_.clear();
  strands_.clear();
}

void StrandQueue::put(const std::string& strand, Task task) {
  Strand& there = strands_[strand];
  if (!there.running && there.tasks.empty()) ready_.push_back(strand);
  there.tasks.push_back(std::move(task));
}

void StrandQueue::release_due(Nanos now) {
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    auto& [strand, task] = delayed_.begin()->second;
    put(strand, std::move(task));
    delayed_.erase(delayed_.begin());
  }
}

bool StrandQueue::clock_is_kept() const {
  if (delayed_.empty()) return true;
  return clock_keeper_ && clock_keeper_->until <= delayed_.begin()->first;
}

void StrandQueue::waits_no_more(Thread thread) {
  if (clock_keeper_ && clock_keeper_->thread == thread) clock_keeper_.reset();
  std::erase(idle_, thread);
}

}  // namespace sluice::control
