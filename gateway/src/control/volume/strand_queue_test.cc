#include "control/volume/strand_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace sluice::control {
namespace {

using Thread = StrandQueue::Thread;

class StrandQueueTest : public testing::Test {
 protected:
  void post(const std::string& strand, Nanos due = 0, Nanos now = 0) {
    queue_.post(strand, [] {}, due, now);
  }
  // All threads wait, the highest number last.
  void all_wait(size_t threads) {
    for (Thread thread = 0; thread < threads; ++thread) {
      EXPECT_FALSE(queue_.next(thread, 0).task);
      EXPECT_FALSE(queue_.wake());
    }
  }

  StrandQueue queue_;
};

TEST_F(StrandQueueTest, OneThreadIsWokenForManyPosts) {
  all_wait(4);
  post("a");
  EXPECT_EQ(queue_.wake(), Thread{3});
  for (const char* strand : {"b", "c", "d"}) {
    post(strand);
    EXPECT_FALSE(queue_.wake());
  }
}

TEST_F(StrandQueueTest, AThreadThatStartsATaskWakesAnotherOnlyIfMoreTasksAreReady) {
  all_wait(3);
  post("a");
  EXPECT_EQ(queue_.wake(), Thread{2});
  post("b");
  EXPECT_EQ(queue_.next(2, 0).strand, "a");
  EXPECT_EQ(queue_.wake(), Thread{1});
  EXPECT_EQ(queue_.next(1, 0).strand, "b");
  EXPECT_FALSE(queue_.wake());
}

TEST_F(StrandQueueTest, AThreadThatEndsATaskRunsTheNextAndWakesNoOther) {
  all_wait(2);
  post("a");
  EXPECT_EQ(queue_.wake(), Thread{1});
  EXPECT_TRUE(queue_.next(1, 0).task);
  for (int i = 0; i < 100; ++i) {
    post("a");  // the strand runs: none of its tasks is ready
    EXPECT_FALSE(queue_.wake());
  }
  for (int i = 0; i < 100; ++i) {
    queue_.ended("a");
    EXPECT_EQ(queue_.next(1, 0).strand, "a");
    EXPECT_FALSE(queue_.wake());
  }
}

TEST_F(StrandQueueTest, OneIdleThreadIsTheClockKeeperAndTheOthersWaitWithoutATimeout) {
  post("a", 10);
  EXPECT_EQ(queue_.next(0, 0).until, 10);
  EXPECT_FALSE(queue_.next(1, 0).until);
  EXPECT_FALSE(queue_.next(2, 0).until);
  post("b", 20);
  EXPECT_FALSE(queue_.wake()) << "later than what is waited for";
}

TEST_F(StrandQueueTest, AClockKeeperThatStartsATaskIsReplacedIfADelayedTaskExists) {
  post("a", 10);
  post("b", 20);
  EXPECT_EQ(queue_.next(0, 0).until, 10);
  EXPECT_FALSE(queue_.next(1, 0).until);
  EXPECT_EQ(queue_.next(0, 10).strand, "a");
  EXPECT_EQ(queue_.wake(), Thread{1});
  EXPECT_EQ(queue_.next(1, 10).until, 20);
  queue_.ended("a");
  EXPECT_FALSE(queue_.next(0, 11).until);
  EXPECT_EQ(queue_.next(1, 20).strand, "b");
  EXPECT_FALSE(queue_.wake()) << "nothing is due later";
}

TEST_F(StrandQueueTest, TheClockKeeperIsWokenForAnEarlierTask) {
  post("a", 20);
  EXPECT_EQ(queue_.next(0, 0).until, 20);
  EXPECT_FALSE(queue_.next(1, 0).until);
  post("b", 10);
  EXPECT_EQ(queue_.wake(), Thread{0});
  EXPECT_EQ(queue_.next(0, 1).until, 10);
}

TEST_F(StrandQueueTest, AThreadThatCallsNextBecomesTheClockKeeperForAnEarlierTask) {
  post("a", 20);
  EXPECT_EQ(queue_.next(0, 0).until, 20);
  EXPECT_FALSE(queue_.next(1, 0).until);
  post("b");
  EXPECT_EQ(queue_.wake(), Thread{1});
  post("c", 10);
  EXPECT_FALSE(queue_.wake()) << "one is on its way";
  EXPECT_EQ(queue_.next(1, 0).strand, "b");
  EXPECT_EQ(queue_.wake(), Thread{0}) << "it waits for too long";
  queue_.ended("b");
  EXPECT_EQ(queue_.next(1, 1).until, 10);
  EXPECT_FALSE(queue_.next(0, 1).until);
}

TEST_F(StrandQueueTest, TheOnlyIdleThreadRunsATaskAndStopsBeingTheClockKeeper) {
  post("a", 10);
  EXPECT_EQ(queue_.next(0, 0).until, 10);
  post("b");
  EXPECT_EQ(queue_.wake(), Thread{0});
  EXPECT_EQ(queue_.next(0, 0).strand, "b");
  EXPECT_FALSE(queue_.wake()) << "there is nobody else";
  queue_.ended("b");
  EXPECT_EQ(queue_.next(0, 1).until, 10);
}

TEST_F(StrandQueueTest, NoTaskOvertakesAnEarlierDueTask) {
  int ran = 0;
  queue_.post("a", [&] { ran = ran * 10 + 1; }, 10, 0);
  queue_.post("a", [&] { ran = ran * 10 + 2; }, 11, 11);
  for (int i = 0; i < 2; ++i) {
    queue_.next(0, 11).task();
    queue_.ended("a");
  }
  EXPECT_EQ(ran, 12);
}

// Simulates threads in a random interleaving of posts, ends of tasks and time.
class Schedule {
 public:
  explicit Schedule(unsigned seed) : random_(seed) {}

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
  // No more posts: all posted tasks run without another wake.
  void run_out() {
    while (one_goes_on() || time_passes()) continue;
  }

  size_t posted() const { return posted_; }
  size_t ran() const { return ran_; }
  bool one_at_a_time() const { return one_at_a_time_; }

 private:
  enum class What : uint8_t { kLooks, kWaits, kRuns };
  struct State {
    What what = What::kLooks;
    std::optional<Nanos> until = {};
    std::string strand = {};
  };
  static constexpr size_t kThreads = 4;
  static constexpr size_t kLanes = 6;

  void post() {
    const Nanos delay = random_() % 2 == 0 ? 0 : static_cast<Nanos>(random_() % 8);
    queue_.post(
        std::string(1, static_cast<char>('a' + random_() % kLanes)), [this] { ++ran_; },
        now_ + delay, now_);
    ++posted_;
    wake();
  }
  void wake() {
    if (const auto woken = queue_.wake()) {
      EXPECT_EQ(threads_[*woken].what, What::kWaits) << "only who waits is woken";
      threads_[*woken] = {};
    }
  }
  bool can_go_on(const State& s) const {
    return s.what != What::kWaits || (s.until && *s.until <= now_);
  }
  bool one_goes_on() {
    std::vector<Thread> able;
    for (Thread t = 0; t < kThreads; ++t) {
      if (can_go_on(threads_[t])) able.push_back(t);
    }
    if (able.empty()) return false;
    const Thread thread = able[random_() % able.size()];
    State& state = threads_[thread];
    if (state.what == What::kRuns) {
      running_.erase(std::find(running_.begin(), running_.end(), state.strand));
      queue_.ended(state.strand);
    }
    StrandQueue::Next next = queue_.next(thread, now_);
    if (!next.task) {
      state = {What::kWaits, next.until, {}};
      return true;
    }
    next.task();
    if (std::count(running_.begin(), running_.end(), next.strand) != 0) one_at_a_time_ = false;
    running_.push_back(next.strand);
    state = {What::kRuns, {}, next.strand};
    wake();
    return true;
  }
  bool time_passes() {
    std::optional<Nanos> first;
    for (const State& s : threads_) {
      if (s.until && (!first || *s.until < *first)) first = s.until;
    }
    if (!first) return false;
    now_ = std::max(now_, *first);
    return true;
  }

  std::mt19937 random_;
  StrandQueue queue_;
  Nanos now_ = 0;
  std::array<State, kThreads> threads_;
  std::vector<std::string> running_;
  size_t posted_ = 0;
  size_t ran_ = 0;
  bool one_at_a_time_ = true;
};

TEST(StrandQueueSchedules, NoWakeUpIsLostInAnyInterleaving) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Schedule schedule(seed);
    for (int i = 0; i < 200; ++i) schedule.step();
    schedule.run_out();
    ASSERT_EQ(schedule.ran(), schedule.posted()) << "seed " << seed;
    ASSERT_TRUE(schedule.one_at_a_time()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sluice::control
