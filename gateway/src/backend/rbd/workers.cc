#include "rbd/workers.h"

#include <chrono>
#include <limits>

namespace sluice::rbd {

Workers& Workers::instance() {
  static Workers workers(limits::kImageThreads);
  return workers;
}

bool Workers::post(const std::string& group, Task task) {
  return add(group, std::move(task), Where::kLast, limits::kMaxImageTasks);
}

bool Workers::post_next(const std::string& group, Task task) {
  return add(group, std::move(task), Where::kFirst, limits::kMaxImageTasks);
}

void Workers::post_always(const std::string& group, Task task) {
  add(group, std::move(task), Where::kLast, std::numeric_limits<size_t>::max());
}

bool Workers::add(const std::string& group, Task task, Where where, size_t bound) {
  const std::lock_guard lock(shared_->mutex);
  std::deque<Task>& waiting = shared_->groups[group].waiting;
  if (waiting.size() >= bound) return false;
  waiting.insert(where == Where::kFirst ? waiting.begin() : waiting.end(), std::move(task));
  begin_locked(shared_);
  return true;
}

// The one with the fewest threads among those that may have another: fewer than are left for all,
// or the first.
Workers::Groups::iterator Workers::next_locked(Shared& shared) {
  auto next = shared.groups.end();
  for (auto at = shared.groups.begin(); at != shared.groups.end(); ++at) {
    const Group& group = at->second;
    if (group.waiting.empty()) continue;
    if (group.running != 0 && group.running + shared.running >= shared.most) continue;
    if (next == shared.groups.end() || group.running < next->second.running) next = at;
  }
  return next;
}

void Workers::begin_locked(const std::shared_ptr<Shared>& shared) {
  for (auto next = next_locked(*shared); next != shared->groups.end();
       next = next_locked(*shared)) {
    Group& group = next->second;
    shared->ready.push_back({next, std::move(group.waiting.front())});
    group.waiting.pop_front();
    ++group.running;
    ++shared->running;
    if (shared->idle < shared->ready.size()) {
      ++shared->threads;
      ++shared->idle;
      std::thread([shared] { work(shared); }).detach();
    }
    shared->changed.notify_one();
  }
}

void Workers::work(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->changed.wait(lock, [&] { return !shared->ready.empty() || shared->stopping; });
    --shared->idle;
    if (shared->ready.empty()) break;
    Ready mine = std::move(shared->ready.front());
    shared->ready.pop_front();
    lock.unlock();
    mine.task();
    mine.task = nullptr;
    lock.lock();
    Group& group = mine.group->second;
    --shared->running;
    if (--group.running == 0 && group.waiting.empty()) shared->groups.erase(mine.group);
    ++shared->idle;
    begin_locked(shared);
  }
  --shared->threads;
  shared->changed.notify_all();
}

// Images that are being closed release their locks, so that the next process need not wait.
bool Workers::stop(Nanos bound) {
  std::unique_lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->changed.notify_all();
  return shared_->changed.wait_for(lock, std::chrono::nanoseconds(bound),
                                   [&] { return shared_->threads == 0; });
}

}  // namespace sluice::rbd
