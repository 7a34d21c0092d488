#include "control/volume/strand_executor.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::control {
namespace {

TEST(StrandExecutorTest, ABlockedTaskDelaysNeitherOtherStrandsNorDelayedTasks) {
  std::latch go(1), others(2);  // before the executor: its destructor waits for tasks that use them
  StrandExecutor executor(2);
  executor.post("a", [&] { go.wait(); });
  executor.post("b", [&] { others.count_down(); });
  executor.post("c", [&] { others.count_down(); }, kMillisecond);
  others.wait();
  go.count_down();
}

TEST(StrandExecutorTest, ADelayedTaskRunsWhileAllThreadsAreIdle) {
  StrandExecutor executor(3);
  for (int i = 0; i < 20; ++i) {
    // The task may still be in count_down() when wait() returns.
    const auto ran = std::make_shared<std::latch>(1);
    executor.post("a", [ran] { ran->count_down(); }, kMillisecond / 2);
    ran->wait();
  }
}

// All tasks that several threads post, with and without delays, run in the order of their strand. A
// lost wake would leave some of them unexecuted.
TEST(StrandExecutorTest, NoTaskOfConcurrentPostersIsLost) {
  constexpr size_t kPosters = 4;
  constexpr size_t kLanes = 5;
  constexpr int kEach = 400;
  struct Strand {
    std::atomic<bool> runs{false};
    int last = -1;
  };
  std::array<std::array<Strand, kLanes>, kPosters> strands;
  std::atomic<bool> right{true};
  std::latch all(kPosters * kLanes * kEach * 2);
  StrandExecutor executor(6);
  std::vector<std::thread> posters;
  for (size_t p = 0; p < kPosters; ++p) {
    posters.emplace_back([&, p] {
      for (int i = 0; i < kEach; ++i) {
        for (size_t l = 0; l < kLanes; ++l) {
          const std::string name = std::to_string(p) + ' ' + std::to_string(l);
          executor.post(name, [&, i, strand = &strands[p][l]] {
            if (strand->runs.exchange(true) || std::exchange(strand->last, i) != i - 1)
              right = false;
            strand->runs = false;
            all.count_down();
          });
          executor.post("delayed " + name, [&] { all.count_down(); }, i % 7 * kMicrosecond * 50);
        }
      }
    });
  }
  all.wait();
  for (std::thread& poster : posters) poster.join();
  EXPECT_TRUE(right);
}

TEST(StrandExecutorTest, StopWaitsForRunningTasksAndDropsTheOthers) {
  std::latch begun(1);
  std::atomic<bool> ended{false};
  const auto dropped = std::make_shared<int>(0);
  StrandExecutor executor(2);
  executor.post("a", [&] {
    begun.count_down();
    ended = true;
  });
  executor.post("b", [dropped] {}, 3600 * kSecond);
  begun.wait();
  executor.stop();
  EXPECT_TRUE(ended);
  EXPECT_EQ(dropped.use_count(), 1);
  executor.post("a", [dropped] {});
  EXPECT_EQ(dropped.use_count(), 1);
}

}  // namespace
}  // namespace sluice::control
