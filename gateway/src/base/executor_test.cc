#include "base/executor.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sluice {
namespace {

constexpr unsigned kThreads = 8;
constexpr size_t kQueued = 100;

// --- strands and delays

TEST(ExecutorTest, ABlockedTaskDelaysNeitherOtherStrandsNorDelayedTasks) {
  std::latch go(1), others(2);  // before the executor: its destructor waits for tasks that use them
  Executor executor({.threads = 2});
  executor.post({"g", "a"}, [&] { go.wait(); });
  executor.post({"g", "b"}, [&] { others.count_down(); });
  executor.post({"g", "c"}, [&] { others.count_down(); }, kMillisecond);
  others.wait();
  go.count_down();
}

TEST(ExecutorTest, ADelayedTaskRunsWhileAllThreadsAreIdle) {
  Executor executor({.threads = 3});
  for (int i = 0; i < 20; ++i) {
    // The task may still be in count_down() when wait() returns.
    const auto ran = std::make_shared<std::latch>(1);
    executor.post({"g", "a"}, [ran] { ran->count_down(); }, kMillisecond / 2);
    ran->wait();
  }
}

TEST(ExecutorTest, ADelayedTaskRunsWhileAllThreadsOfAnotherGroupHang) {
  std::latch go(1), ran(1);
  Executor executor({.threads = 1});
  executor.post({"a"}, [&] { go.wait(); });
  executor.post({"b"}, [&] { ran.count_down(); }, kMillisecond);
  ran.wait();
  go.count_down();
}

// All tasks that several threads post, with and without delays, run in the order of their strand. A
// lost wake would leave some of them unexecuted.
TEST(ExecutorTest, NoTaskOfConcurrentPostersIsLost) {
  constexpr size_t kPosters = 4;
  constexpr size_t kLanes = 5;
  constexpr int kEach = 400;
  struct Lane {
    std::atomic<bool> runs{false};
    int last = -1;
  };
  std::array<std::array<Lane, kLanes>, kPosters> lanes;
  std::atomic<bool> right{true};
  std::latch all(kPosters * kLanes * kEach * 2);
  Executor executor({.threads = 6});
  std::vector<std::thread> posters;
  for (size_t p = 0; p < kPosters; ++p) {
    posters.emplace_back([&, p] {
      for (int i = 0; i < kEach; ++i) {
        for (size_t l = 0; l < kLanes; ++l) {
          const std::string group = std::to_string(p % 2);
          const std::string name = std::to_string(p) + ' ' + std::to_string(l);
          executor.post({group, name}, [&, i, lane = &lanes[p][l]] {
            if (lane->runs.exchange(true) || std::exchange(lane->last, i) != i - 1) right = false;
            lane->runs = false;
            all.count_down();
          });
          executor.post(
              {group, "delayed " + name}, [&] { all.count_down(); }, i % 7 * kMicrosecond * 50);
        }
      }
    });
  }
  all.wait();
  for (std::thread& poster : posters) poster.join();
  EXPECT_TRUE(right);
}

TEST(ExecutorTest, TheNextStepOfAStartedTaskRunsBeforeQueuedTasks) {
  std::latch go(1);
  std::string order;
  Executor one({.threads = 1, .at_end = Executor::AtEnd::kRunQueued});
  ASSERT_TRUE(one.try_post({"a"}, [&] { go.wait(); }));
  ASSERT_TRUE(one.try_post({"a"}, [&] { order += "first "; }));
  ASSERT_TRUE(one.try_post_next("a", [&] { order += "next "; }));
  go.count_down();
  ASSERT_TRUE(one.stop());
  EXPECT_EQ(order, "next first ");
}

// --- groups that hang

// Tasks that hang until the test releases them.
class Hanging {
 public:
  void post(Executor& executor, const std::string& group, unsigned tasks) {
    for (unsigned i = 0; i < tasks; ++i) {
      ASSERT_TRUE(executor.try_post({group}, [this, gone = gone_] {
        begun.fetch_add(1);
        gone.wait();
      }));
    }
  }
  void release() { go_.set_value(); }

  std::atomic<unsigned> begun = 0;

 private:
  std::promise<void> go_;
  const std::shared_future<void> gone_ = go_.get_future().share();
};

constexpr Executor::Setup kBounded{
    .threads = kThreads, .queued_tasks = kQueued, .at_end = Executor::AtEnd::kRunQueued};

// Returns when a task of `group` has run.
void run(Executor& executor, const std::string& group) {
  const auto ran = std::make_shared<std::promise<void>>();
  std::future<void> future = ran->get_future();
  ASSERT_TRUE(executor.try_post({group}, [ran] { ran->set_value(); }));
  future.wait();
}

TEST(ExecutorTest, AHangingGroupDoesNotBlockAnother) {
  Hanging hanging;
  Executor executor(kBounded);
  hanging.post(executor, "a", kThreads);
  run(executor, "b");
  hanging.post(executor, "a", 4 * kThreads);
  run(executor, "b");
  hanging.release();
  EXPECT_TRUE(executor.stop());
}

TEST(ExecutorTest, ManyHangingGroupsDoNotBlockAnother) {
  constexpr unsigned kGroups = 3 * kThreads;
  Hanging hanging;
  Executor executor(kBounded);
  for (unsigned group = 0; group < kGroups; ++group) {
    hanging.post(executor, std::to_string(group), 2 * kThreads);
  }
  run(executor, "b");
  EXPECT_LE(hanging.begun, 2 * kThreads + kGroups);
  hanging.release();
  EXPECT_TRUE(executor.stop());
  EXPECT_EQ(hanging.begun, kGroups * 2 * kThreads);
}

TEST(ExecutorTest, ASingleGroupUsesAllItsThreadsAndNoMore) {
  Hanging hanging;
  Executor executor(kBounded);
  hanging.post(executor, "a", 4 * kThreads);
  while (hanging.begun < kThreads) std::this_thread::yield();
  run(executor, "b");
  EXPECT_EQ(hanging.begun, kThreads);
  hanging.release();
  EXPECT_TRUE(executor.stop());
}

TEST(ExecutorTest, AFullQueueOfOneGroupRefusesItsTasksAndNoOthers) {
  Hanging hanging;
  std::atomic<bool> mandatory = false;
  Executor one({.threads = 1, .queued_tasks = kQueued, .at_end = Executor::AtEnd::kRunQueued});
  hanging.post(one, "a", 1);
  while (hanging.begun == 0) std::this_thread::yield();
  hanging.post(one, "a", kQueued);
  EXPECT_FALSE(one.try_post({"a"}, [] {}));
  EXPECT_FALSE(one.try_post_next("a", [] {}));
  one.post({"a"}, [&] { mandatory = true; });
  run(one, "b");
  hanging.release();
  EXPECT_TRUE(one.stop());
  EXPECT_TRUE(mandatory);
}

TEST(ExecutorTest, ARefusedTaskIsDestroyedWithoutTheMutex) {
  // Its captures post when they are destroyed.
  struct Posts {
    explicit Posts(Executor& e) : executor(e) {}
    ~Posts() {
      executor.post({"b"}, [] {});
    }
    Executor& executor;
  };
  Executor none({.threads = 1, .queued_tasks = 0});
  std::latch go(1);
  none.post({"a"}, [&] { go.wait(); });
  EXPECT_FALSE(none.try_post({"a"}, [posts = std::make_shared<Posts>(none)] {}));
  go.count_down();
  EXPECT_TRUE(none.stop());
}

// --- stop

TEST(ExecutorTest, StopWaitsForRunningTasksAndDropsTheOthers) {
  std::latch begun(1);
  std::atomic<bool> ended{false};
  const auto dropped = std::make_shared<int>(0);
  Executor executor({.threads = 2});
  executor.post({"g", "a"}, [&] {
    begun.count_down();
    ended = true;
  });
  executor.post({"g", "b"}, [dropped] {}, 3600 * kSecond);
  begun.wait();
  EXPECT_TRUE(executor.stop());
  EXPECT_TRUE(ended);
  EXPECT_EQ(dropped.use_count(), 1);
  executor.post({"g", "a"}, [dropped] {});
  EXPECT_EQ(dropped.use_count(), 1);
  EXPECT_FALSE(executor.try_post({"g"}, [dropped] {}));
}

TEST(ExecutorTest, StopReportsATaskThatHangsAndRunsNoQueuedTaskAfterwards) {
  std::latch begun(1), go(1);
  std::atomic<bool> ran{false};
  Executor executor({.threads = 1});
  executor.post({"a"}, [&] {
    begun.count_down();
    go.wait();
  });
  executor.post({"a"}, [&] { ran = true; });
  begun.wait();
  EXPECT_FALSE(executor.stop(kMillisecond));
  go.count_down();
  EXPECT_TRUE(executor.stop());
  EXPECT_FALSE(ran);
}

TEST(ExecutorTest, TasksPostedAfterStopRunIfQueuedTasksDo) {
  Executor executor(kBounded);
  EXPECT_TRUE(executor.stop());
  run(executor, "a");
}

TEST(ExecutorTest, AnExecutorIsDestroyedWhileATaskHangs) {
  const auto go = std::make_shared<std::latch>(1);
  const auto ended = std::make_shared<std::latch>(2);
  {
    Executor executor(
        {.threads = 1, .at_end = Executor::AtEnd::kRunQueued, .destructor_waits = kMillisecond});
    const auto begun = std::make_shared<std::latch>(1);
    executor.post({"a"}, [begun, go, ended] {
      begun->count_down();
      go->wait();
      ended->count_down();
    });
    executor.post({"a"}, [ended] { ended->count_down(); });
    begun->wait();
  }
  go->count_down();
  ended->wait();
}

// --- without threads

std::atomic<int> failing_starts = 0;

bool fail_first(std::function<void()> work) {
  if (failing_starts.fetch_sub(1) > 0) return false;
  return start_detached_thread(std::move(work));
}

// A limit of processes is reached, for a while.
TEST(ExecutorTest, TasksWhoseThreadCouldNotStartRunWithTheNextOne) {
  failing_starts = 2;
  std::latch ran(3);
  Executor executor({.threads = 2, .start = fail_first});
  for (const char* strand : {"a", "b", "c"}) {
    executor.post({"g", strand}, [&] { ran.count_down(); });
  }
  ran.wait();
}

TEST(ExecutorTest, AnExecutorWithoutAnyThreadEnds) {
  failing_starts = 1 << 20;
  Executor executor({.threads = 2, .start = fail_first});
  executor.post({"g"}, [] { FAIL() << "no thread could run it"; });
  EXPECT_TRUE(executor.stop());
}

}  // namespace
}  // namespace sluice
