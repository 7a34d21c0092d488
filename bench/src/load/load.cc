#include "load/load.h"

#include <poll.h>
#include <unistd.h>

namespace sluice::bench {
namespace {
// What is under way when the window ends may be 160 MiB on a line of 100 Mb/s: it is waited for as
// long as it comes. A target's pings come, too, so that is bounded.
constexpr uint64_t kDrainSilence = 10'000'000'000;
constexpr uint64_t kDrainLimit = 120'000'000'000;
}  // namespace

bool Load::any_failed() const {
  for (const auto& session : sessions_) {
    if (session->failed()) return true;
  }
  return false;
}

// Polls all sessions, and sleeps only if the options request it. poll() with no timeout takes no
// lock of the socket. It leaves no waiter that the target's send would have to wake, unlike a
// receive or epoll.
void Load::wait_for_work() {
  for (size_t i = 0; i < sessions_.size(); ++i) {
    const bool blocked = sessions_[i]->blocked();
    polled_[i].events = static_cast<short>(POLLIN | (blocked ? POLLOUT : 0));
  }
  poll(polled_.data(), polled_.size(), options_.wait == Wait::kSleep ? 100 : 0);
}

void Load::poll_once() {
  const bool poll_first = options_.wait != Wait::kReceive;
  bool worked = false;
  if (poll_first) wait_for_work();
  if (options_.wait == Wait::kSleep) {  // what a blocking poll took was idle time
    const uint64_t now = now_ns();
    idle_ns_ += now - polled_at_;
    polled_at_ = now;
  }
  for (size_t i = 0; i < sessions_.size(); ++i) {
    if (poll_first && polled_[i].revents == 0) continue;
    worked |= sessions_[i]->pump();
  }
  const uint64_t now = now_ns();
  if (worked) {
    worked_at_ = now;
  } else {
    idle_ns_ += now - polled_at_;
  }
  polled_at_ = now;
}

void Load::run_until(uint64_t end_ns) {
  while (polled_at_ < end_ns && !any_failed()) poll_once();
}

bool Load::drain() {
  const uint64_t begun = worked_at_ = now_ns();
  for (;;) {
    bool idle = true;
    for (const auto& session : sessions_) idle &= session->idle();
    if (idle) return true;
    if (any_failed() || polled_at_ > begun + kDrainLimit || polled_at_ > worked_at_ + kDrainSilence)
      return false;
    poll_once();
  }
}

void Load::collect(Tally* into) {
  for (auto& session : sessions_) {
    Tally& t = session->tally();
    into->reads += t.reads;
    into->writes += t.writes;
    into->attentions += t.attentions;
    into->receives += t.receives;
    into->errors += t.errors;
    into->mismatches += t.mismatches;
    if (into->first_error.empty()) into->first_error = t.first_error;
    into->latency.merge(t.latency);
    session->reset_tally();
  }
}

void Load::fill() {
  for (auto& session : sessions_) session->start(Phase::kFill);
  for (;;) {
    bool idle = true;
    for (const auto& session : sessions_) idle &= session->idle();
    if (idle || any_failed()) break;
    poll_once();
  }
  Tally tally;
  collect(&tally);
  result_.filled = tally.writes;
  result_.errors += tally.errors;
  result_.tally.first_error = tally.first_error;
}

LoadResult Load::run(bool fill_first) {
  own_ = CpuWatch({getpid()}, -1);
  polled_.clear();
  for (const auto& session : sessions_) {
    polled_.push_back({.fd = session->fd(), .events = POLLIN, .revents = 0});
  }
  polled_at_ = now_ns();
  if (fill_first) fill();

  Tally outside;  // what happens before and after the window counts for errors only
  for (auto& session : sessions_) session->start(Phase::kLoad);
  run_until(now_ns() + static_cast<uint64_t>(options_.warmup_s * 1e9));
  collect(&outside);

  watch_.start();
  own_.start();
  idle_ns_ = 0;
  const uint64_t start = polled_at_ = now_ns();
  run_until(start + static_cast<uint64_t>(options_.seconds * 1e9));
  const uint64_t end = now_ns();
  const uint64_t idle = idle_ns_;  // draining adds to it
  own_.stop();
  watch_.stop();
  Tally window;
  collect(&window);

  for (auto& session : sessions_) session->stop();
  result_.drained = drain();
  collect(&outside);
  if (result_.drained) {
    for (auto& session : sessions_) session->finish();
  }

  const auto span = static_cast<double>(end - start);
  result_.seconds = span / 1e9;
  result_.busy = 1 - static_cast<double>(idle) / span;
  result_.own_cpu = static_cast<double>(own_.processes().run_ns) / span;
  result_.own_wait = static_cast<double>(own_.processes().wait_ns) / span;
  result_.errors += window.errors + outside.errors + (result_.drained ? 0 : 1);
  result_.mismatches = window.mismatches + outside.mismatches;
  std::string first = result_.tally.first_error;
  if (first.empty()) first = window.first_error;
  if (first.empty()) first = outside.first_error;
  if (first.empty() && !result_.drained) first = "commands were never answered";
  result_.tally = window;
  result_.tally.first_error = first;
  return result_;
}

}  // namespace sluice::bench
