#include "base/release_process.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "base/boot_clock.h"
#include "base/release_plan.h"

namespace sluice {
namespace {

constexpr std::chrono::milliseconds kCheck(1);

}  // namespace

// The thread that creates the process, and waits for its end.
struct ReleaseProcess::Parent {
  void run() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    pthread_setname_np(pthread_self(), "release-parent");
    plan->run();
    over.store(true);
  }

  ReleasePlan::Ptr plan;
  std::atomic<bool> over{false};
  std::thread thread;
};

Result<std::unique_ptr<ReleaseProcess>> ReleaseProcess::start() {
  auto parent = std::make_unique<Parent>();
  parent->plan = ReleasePlan::create();
  if (!parent->plan) return Error{"no memory or descriptor is left"};
  try {
    parent->thread = std::thread([self = parent.get()] { self->run(); });
  } catch (const std::system_error& error) {
    return Error{error.what()};
  }
  return std::unique_ptr<ReleaseProcess>(new ReleaseProcess(std::move(parent)));
}

ReleaseProcess::ReleaseProcess(std::unique_ptr<Parent> parent) : parent_(std::move(parent)) {}

ReleaseProcess::~ReleaseProcess() {
  while (pid() == 0 && running()) std::this_thread::sleep_for(kCheck);
  parent_->plan->kill();
  parent_->thread.join();
  parent_->plan->reap();
}

bool ReleaseProcess::wait_until_ready(Nanos limit) const {
  const Nanos until = boot_clock_now() + limit;
  while (!parent_->plan->ready()) {
    if (!running() || boot_clock_now() >= until) return false;
    std::this_thread::sleep_for(kCheck);
  }
  return true;
}

bool ReleaseProcess::running() const { return !parent_->over.load(); }

pid_t ReleaseProcess::pid() const { return parent_->plan->pid(); }

}  // namespace sluice
