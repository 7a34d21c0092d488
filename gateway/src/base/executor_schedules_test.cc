// Random interleavings of the threads of an executor, without threads: all that
// executor_queue.h decides, checked after each step.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/executor_queue.h"

namespace sluice {
namespace {

using Thread = ExecutorQueue::Thread;
using Strand = ExecutorQueue::Strand;
using Where = ExecutorQueue::Where;

// Simulates threads in a random interleaving of posts, ends of tasks and time. Tasks of the groups
// that hang do not end until run_out().
class Schedule {
 public:
  explicit Schedule(unsigned seed) : random_(seed), hanging_(random_() % (kGroups + 1)) {}

  void step() {
    switch (random_() % 4) {
      case 0:
        return post();
      case 1:
        now_ += static_cast<Nanos>(random_() % 3);
        return;
      default:
        one_goes_on();
    }
  }
  // No more posts: the tasks of all groups that do not hang run without another wake.
  void run_while_some_hang() {
    while (one_goes_on() || time_passes()) continue;
    for (size_t group = hanging_; group < kGroups; ++group) {
      EXPECT_EQ(ran_[group], posted_[group]) << "group " << group;
    }
    for (size_t group = 0; group < hanging_; ++group) {
      EXPECT_TRUE(posted_[group] == 0 || ran_[group] != 0) << "no thread for group " << group;
    }
  }
  // The tasks that hang end: all posted tasks run.
  void run_out() {
    hanging_ = 0;
    while (one_goes_on() || time_passes()) continue;
    EXPECT_EQ(ran_, posted_);
  }

 private:
  enum class What : uint8_t { kNone, kLooks, kWaits, kRuns };
  struct State {
    What what = What::kNone;
    std::optional<Nanos> until = {};
    Strand strand = {};
  };
  static constexpr unsigned kShare = 2;
  static constexpr size_t kGroups = 5;
  static constexpr size_t kStrands = 3;

  void post() {
    const Nanos delay = random_() % 2 == 0 ? 0 : static_cast<Nanos>(random_() % 8);
    const size_t group = random_() % kGroups;
    const size_t strand = random_() % (kStrands + 1);
    ExecutorQueue::Task task = [this, group] { ++ran_[group]; };
    const bool first = strand == kStrands && delay == 0 && random_() % 2 == 0;
    queue_.post({std::to_string(group), strand == kStrands ? "" : std::to_string(strand)}, task,
                first ? Where::kFirst : Where::kLast, ExecutorQueue::kNoBound, now_ + delay, now_);
    ++posted_[group];
    wake();
  }
  void wake() {
    const auto wake = queue_.wake();
    if (!wake) return;
    if (wake->thread >= threads_.size()) threads_.resize(wake->thread + 1);
    State& woken = threads_[wake->thread];
    EXPECT_EQ(woken.what, wake->starts ? What::kNone : What::kWaits)
        << "only a thread that waits is woken";
    woken = {.what = What::kLooks};
  }
  bool hangs(const Strand& strand) const { return std::stoul(strand.group) < hanging_; }
  bool can_go_on(const State& s) const {
    switch (s.what) {
      case What::kNone:
        return false;
      case What::kLooks:
        return true;
      case What::kWaits:
        return s.until && *s.until <= now_;
      case What::kRuns:
        return !hangs(s.strand);
    }
    return false;
  }
  bool one_goes_on() {
    std::vector<Thread> able;
    for (Thread t = 0; t < threads_.size(); ++t) {
      if (can_go_on(threads_[t])) able.push_back(t);
    }
    if (able.empty()) return false;
    const Thread thread = able[random_() % able.size()];
    if (threads_[thread].what == What::kRuns) end(threads_[thread].strand);
    ExecutorQueue::Next next = queue_.next(thread, now_);
    switch (next.what) {
      case ExecutorQueue::Next::What::kEnd:
        threads_[thread] = {};
        wake();
        break;
      case ExecutorQueue::Next::What::kWait:
        threads_[thread] = {What::kWaits, next.until, {}};
        break;
      case ExecutorQueue::Next::What::kRun:
        begin(next.strand);
        next.task();
        threads_[thread] = {What::kRuns, {}, next.strand};
        wake();
    }
    check_threads();
    return true;
  }
  void begin(const Strand& strand) {
    if (!strand.name.empty()) {
      EXPECT_TRUE(strands_.insert(strand.group + ' ' + strand.name).second) << "two at a time";
    }
    EXPECT_LE(++running_[std::stoul(strand.group)], kShare);
  }
  void end(const Strand& strand) {
    strands_.erase(strand.group + ' ' + strand.name);
    --running_[std::stoul(strand.group)];
    queue_.ended(strand);
  }
  // The bounds that executor.h promises.
  void check_threads() {
    const auto idle = static_cast<size_t>(
        std::ranges::count_if(threads_, [](const State& s) { return s.what == What::kWaits; }));
    EXPECT_LE(idle, kShare + 1);
    const auto groups = static_cast<size_t>(
        std::ranges::count_if(running_, [](unsigned running) { return running != 0; }));
    EXPECT_LE(queue_.threads(), std::max<size_t>(most_groups_, groups) + 2 * kShare + 1);
    most_groups_ = std::max(most_groups_, groups);
  }
  bool time_passes() {
    std::optional<Nanos> first;
    for (const State& s : threads_) {
      if (s.what == What::kWaits && s.until && (!first || *s.until < *first)) first = s.until;
    }
    if (!first) return false;
    now_ = std::max(now_, *first);
    return true;
  }

  std::mt19937 random_;
  size_t hanging_;  // groups; the first ones
  ExecutorQueue queue_{kShare};
  Nanos now_ = 0;
  std::vector<State> threads_;
  std::set<std::string> strands_;  // that run
  std::array<unsigned, kGroups> running_{};
  size_t most_groups_ = 0;
  std::array<size_t, kGroups> posted_{};
  std::array<size_t, kGroups> ran_{};
};

TEST(ExecutorQueueSchedules, NoWakeUpIsLostAndNoGroupWaitsForAnotherInAnyInterleaving) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Schedule schedule(seed);
    for (int i = 0; i < 200; ++i) schedule.step();
    schedule.run_while_some_hang();
    schedule.run_out();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sluice
