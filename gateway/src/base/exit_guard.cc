#include "base/exit_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/blocking_section.h"
#include "base/boot_clock.h"
#include "base/limits.h"
#include "base/log.h"

namespace sluice {
namespace {

std::atomic<ExitGuard*> guard{nullptr};

}  // namespace

ExitGuard::ExitGuard() : thread_([this] { run(); }) { guard.store(this); }

ExitGuard::~ExitGuard() {
  guard.store(nullptr);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ExitGuard::end_process_after(Nanos time, int status) {
  const std::lock_guard lock(mutex_);
  end_ = End{boot_clock_now() + time, status};
}

void ExitGuard::prepare() {
  if (ExitGuard* one = guard.load()) one->prepare_this();
}

void ExitGuard::prepare_this() {
  std::unique_lock lock(mutex_);
  required_ = asked_ = true;
  changed_.notify_all();
  ready_changed_.wait_for(lock, std::chrono::nanoseconds(limits::kReleaseReady),
                          [this] { return ready_; });
}

void ExitGuard::run() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  pthread_setname_np(pthread_self(), "exit-guard");
  BlockingSection::Scan scan;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, std::chrono::nanoseconds(limits::kLastingCall),
                      [this] { return stopping_ || asked_; });
    asked_ = false;
    const bool required = required_;
    const std::optional<End> end = end_;
    lock.unlock();
    if (end && boot_clock_now() >= end->at) end_now(end->status);
    review(scan.finds_lasting() || required);
    lock.lock();
    ready_ = process_ != nullptr;
    ready_changed_.notify_all();
  }
}

// Starts or ends the release process.
void ExitGuard::review(bool lasting) {
  const Nanos now = boot_clock_now();
  if (lasting) needed_until_ = now + limits::kReleaseKept;
  if (process_ && (now >= needed_until_ || !process_->running())) process_.reset();
  if (process_ || now >= needed_until_) return;
  Result<std::unique_ptr<ReleaseProcess>> started = ReleaseProcess::start();
  if (started && (*started)->wait_until_ready(limits::kReleaseReady)) {
    process_ = std::move(started).value();
    failure_logged_ = false;
    log::info("a call into the kernel lasts long; a second process would release the descriptors",
              {{"pid", process_->pid()}});
  } else if (!std::exchange(failure_logged_, true)) {
    log::warning("a blocked thread would keep locks and connections after the end of the process",
                 {{"error", started ? "no further process is permitted" : started.error()},
                  {"fix", "raise the limit of processes (pids.max, TasksMax, RLIMIT_NPROC)"}});
  }
}

void ExitGuard::end_now(int status) {
  log::last_words("the time for the shutdown is over; the gateway ends with work in flight");
  review(true);
  ::_exit(status);
}

}  // namespace sluice
