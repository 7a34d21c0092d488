#include "base/executor.h"

#include <pthread.h>

#include <chrono>
#include <utility>
#include <vector>

#include "base/blocking_section.h"
#include "base/boot_clock.h"
#include "base/log.h"

namespace sluice {

Executor::Executor(const Setup& setup)
    : setup_(setup), shared_(std::make_shared<Shared>(setup.threads, setup.start)) {}

void Executor::post(const Strand& strand, Task task, Nanos delay) {
  add(strand, std::move(task), ExecutorQueue::Where::kLast, ExecutorQueue::kNoBound, delay);
}

bool Executor::try_post(const Strand& strand, Task task) {
  return add(strand, std::move(task), ExecutorQueue::Where::kLast, setup_.queued_tasks, 0);
}

bool Executor::try_post_next(const std::string& group, Task task) {
  return add({group}, std::move(task), ExecutorQueue::Where::kFirst, setup_.queued_tasks, 0);
}

// A task that is dropped is destroyed after the mutex is released.
bool Executor::add(const Strand& strand, Task task, ExecutorQueue::Where where, size_t bound,
                   Nanos delay) {
  Woken woken;
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->stopping && (delay > 0 || setup_.at_end == AtEnd::kDropQueued)) return false;
    const Nanos now = boot_clock_now();
    if (!shared_->queue.post(strand, task, where, bound, now + delay, now)) return false;
    woken = wake_locked(*shared_);
  }
  carry_out(shared_, woken);
  return true;
}

bool Executor::stop(Nanos bound) {
  std::unique_lock lock(shared_->mutex);
  shared_->stopping = true;
  if (setup_.at_end == AtEnd::kDropQueued) {
    shared_->queue.end();
  } else {
    shared_->queue.finish();
  }
  for (Worker& worker : shared_->workers) worker.wake.notify_one();
  const auto quiet = [this] { return shared_->queue.threads() == 0; };
  if (bound == kForever) {
    shared_->thread_ended.wait(lock, quiet);
  } else if (!shared_->thread_ended.wait_for(lock, std::chrono::nanoseconds(bound), quiet)) {
    return false;
  }
  const std::vector<Task> dropped = shared_->queue.take_all();
  lock.unlock();
  return true;
}

Executor::Woken Executor::wake_locked(Shared& shared) {
  const std::optional<ExecutorQueue::Wake> wake = shared.queue.wake();
  if (!wake) return {};
  if (wake->thread == shared.workers.size()) shared.workers.emplace_back();
  Worker& worker = shared.workers[wake->thread];
  if (wake->starts) return {&worker, wake->thread};
  worker.woken = true;
  return {&worker};
}

void Executor::carry_out(const SharedPtr& shared, const Woken& woken) {
  if (woken.worker == nullptr) return;
  if (!woken.starts) return woken.worker->wake.notify_one();
  if (shared->start([shared, self = *woken.starts] { work(shared, self); })) return;
  {
    const std::lock_guard lock(shared->mutex);
    shared->queue.not_started(*woken.starts);
    if (shared->queue.threads() == 0) shared->thread_ended.notify_all();
  }
  log::error("a thread could not be started, so work waits",
             {{"remedy", "raise TasksMax= of the service or the pod's limit of processes"}});
}

void Executor::wait(Shared& shared, Worker& self, std::optional<Nanos> until,
                    std::unique_lock<std::mutex>& lock) {
  const auto called = [&] { return self.woken || shared.stopping; };
  if (until) {
    self.wake.wait_for(lock, std::chrono::nanoseconds(*until - boot_clock_now()), called);
  } else {
    self.wake.wait(lock, called);
  }
  self.woken = false;
}

void Executor::work(const SharedPtr& shared, ExecutorQueue::Thread self) {
  ::pthread_setname_np(::pthread_self(), "executor");
  using What = ExecutorQueue::Next::What;
  std::unique_lock lock(shared->mutex);
  for (;;) {
    ExecutorQueue::Next next = shared->queue.next(self, boot_clock_now());
    if (next.what == What::kWait) {
      wait(*shared, shared->workers[self], next.until, lock);
      continue;
    }
    if (next.what == What::kEnd) shared->thread_ended.notify_all();
    const Woken woken = wake_locked(*shared);
    lock.unlock();
    carry_out(shared, woken);
    if (next.what == What::kEnd) return;
    {
      const BlockingSection section;
      next.task();
      next.task =
          nullptr;  // destroying its captures may take long, so it happens without the mutex
    }
    lock.lock();
    shared->queue.ended(next.strand);
  }
}

}  // namespace sluice
