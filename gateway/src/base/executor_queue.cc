#include "base/executor_queue.h"

#include <cassert>

#include "base/safety_mutation.h"

namespace sluice {

bool ExecutorQueue::post(const Strand& strand, Task& task, Where where, size_t bound, Nanos due,
                         Nanos now) {
  assert(where == Where::kLast || (strand.name.empty() && due <= now));
  if (due > now) {
    delayed_.emplace(due, std::pair{strand, std::move(task)});
    return true;
  }
  release_due(now);  // an immediate task must not overtake delayed ones that are due
  const auto group = groups_.find(strand.group);
  if (group != groups_.end() && group->second.waiting >= bound) return false;
  put(strand, std::move(task), where);
  return true;
}

ExecutorQueue::Next ExecutorQueue::next(Thread thread, Nanos now) {
  if (woken_ == thread) woken_.reset();
  waits_no_more(thread);
  release_due(now);
  if (can_run()) return begin();
  return state_ == State::kOpen ? wait(thread) : end_thread(thread);
}

void ExecutorQueue::ended(const Strand& strand) {
  const auto at = groups_.find(strand.group);
  assert(at != groups_.end() && at->second.running != 0);
  Group& group = at->second;
  withdraw(group);
  --running_;
  --group.running;
  if (!strand.name.empty()) {
    const auto ran = group.strands.find(strand.name);
    ran->second.running = false;
    if (ran->second.tasks.empty()) {
      group.strands.erase(ran);
    } else {
      group.ready.push_back({strand.name, nullptr});
    }
  }
  if (group.running == 0 && group.waiting == 0) {
    groups_.erase(at);
  } else {
    offer(at);
  }
}

std::optional<ExecutorQueue::Wake> ExecutorQueue::wake() {
  if (woken_) return std::nullopt;  // it checks everything, then calls wake()
  const bool work = can_run();
  const bool clock = state_ == State::kOpen && !clock_is_kept();
  if (!work && !clock) return std::nullopt;
  bool starts = false;
  // Wakes the clock keeper itself if it waits too long or is the only thread.
  if (clock_keeper_ && (!work || idle_.empty())) {
    woken_ = clock_keeper_->thread;
    clock_keeper_.reset();
  } else if (!idle_.empty()) {
    woken_ = idle_.back();
    idle_.pop_back();
  } else if (!free_.empty()) {
    starts = true;
    woken_ = free_.back();
    free_.pop_back();
  } else {
    starts = true;
    woken_ = threads_++;
  }
  return Wake{*woken_, starts};
}

void ExecutorQueue::not_started(Thread thread) {
  free_.push_back(thread);
  if (woken_ == thread) woken_.reset();
}

void ExecutorQueue::finish() {
  if (state_ == State::kOpen) state_ = State::kFinishing;
}

std::vector<ExecutorQueue::Task> ExecutorQueue::take_all() {
  assert(running_ == 0);
  std::vector<Task> all;
  for (auto& [due, delayed] : delayed_) all.push_back(std::move(delayed.second));
  for (auto& [name, group] : groups_) {
    for (Ready& ready : group.ready) {
      if (ready.task) all.push_back(std::move(ready.task));
    }
    for (auto& [strand, there] : group.strands) {
      for (Task& task : there.tasks) all.push_back(std::move(task));
    }
  }
  delayed_.clear();
  offered_.clear();
  groups_.clear();
  return all;
}

void ExecutorQueue::put(const Strand& strand, Task task, Where where) {
  const auto at = groups_.try_emplace(strand.group).first;
  Group& group = at->second;
  const bool offered = !group.ready.empty();
  ++group.waiting;
  if (strand.name.empty()) {
    group.ready.insert(where == Where::kFirst ? group.ready.begin() : group.ready.end(),
                       {{}, std::move(task)});
  } else {
    StrandTasks& there = group.strands[strand.name];
    if (!there.running && there.tasks.empty()) group.ready.push_back({strand.name, nullptr});
    there.tasks.push_back(std::move(task));
  }
  if (!offered) offer(at);
}

void ExecutorQueue::release_due(Nanos now) {
  if (state_ != State::kOpen) return;
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    auto& [strand, task] = delayed_.begin()->second;
    put(strand, std::move(task), Where::kLast);
    delayed_.erase(delayed_.begin());
  }
}

// A group that was served is offered behind the others with as many running tasks.
void ExecutorQueue::offer(Groups::iterator group) {
  if (group->second.ready.empty()) return;
  group->second.offered = ++offers_;
  offered_.emplace(std::pair{group->second.running, offers_}, group);
}

// If the group with the fewest running tasks may not have another thread, then no group may.
bool ExecutorQueue::can_run() const {
  if (state_ == State::kEnded || offered_.empty()) return false;
  if (mutation_disables(Guard::kGroupThreads)) return running_ < most_running_;
  const unsigned running = offered_.begin()->first.first;
  return running == 0 || running + running_ < most_running_;
}

ExecutorQueue::Next ExecutorQueue::begin() {
  const auto at = offered_.begin()->second;
  Group& group = at->second;
  withdraw(group);
  Ready ready = std::move(group.ready.front());
  group.ready.pop_front();
  if (!ready.strand.empty()) {
    StrandTasks& strand = group.strands[ready.strand];
    ready.task = std::move(strand.tasks.front());
    strand.tasks.pop_front();
    strand.running = true;
  }
  --group.waiting;
  ++group.running;
  ++running_;
  offer(at);
  return {.what = Next::What::kRun,
          .task = std::move(ready.task),
          .strand = {at->first, std::move(ready.strand)}};
}

ExecutorQueue::Next ExecutorQueue::wait(Thread thread) {
  const bool kept = clock_is_kept();
  // If the clock keeper waits for too long, wake() corrects that.
  if (idle_.size() >= most_idle_ && (kept || clock_keeper_)) return end_thread(thread);
  if (kept) {
    idle_.push_back(thread);
    return {};
  }
  // The former clock keeper waits for a later time. That does no harm: it finds nothing to do.
  if (clock_keeper_) idle_.insert(idle_.begin(), clock_keeper_->thread);
  clock_keeper_ = {thread, delayed_.begin()->first};
  return {.until = clock_keeper_->until};
}

ExecutorQueue::Next ExecutorQueue::end_thread(Thread thread) {
  free_.push_back(thread);
  return {.what = Next::What::kEnd};
}

bool ExecutorQueue::clock_is_kept() const {
  if (delayed_.empty()) return true;
  return clock_keeper_ && clock_keeper_->until <= delayed_.begin()->first;
}

void ExecutorQueue::waits_no_more(Thread thread) {
  if (clock_keeper_ && clock_keeper_->thread == thread) clock_keeper_.reset();
  std::erase(idle_, thread);
}

}  // namespace sluice
