#include "rbd/workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>

#include "base/limits.h"

namespace sluice::rbd {
namespace {

TEST(Workers, AnOverdueTaskIsReportedAndItsLateResultIsDestroyed) {
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  auto result = std::make_shared<int>(7);
  std::weak_ptr<int> seen = result;
  const auto late = Workers::instance().run<std::shared_ptr<int>>(
      "pool", "pool/image", kMillisecond, [gone, result = std::move(result)]() mutable {
        gone.wait();
        return Result<std::shared_ptr<int>>(std::move(result));
      });
  ASSERT_FALSE(late.ok());
  EXPECT_THAT(late.error(), testing::HasSubstr("pool/image: Ceph didn't answer within"));
  EXPECT_FALSE(seen.expired());
  go.set_value();
  while (!seen.expired()) std::this_thread::yield();
}

TEST(Workers, BeyondTheQueueLimitOnlyMandatoryTasksAreAccepted) {
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  std::atomic<unsigned> done = 0;
  unsigned taken = 0;
  while (Workers::instance().post("a", [gone, &done] {
    gone.wait();
    ++done;
  })) {
    ++taken;
    ASSERT_LE(taken, limits::kMaxImageTasks + limits::kImageThreads);
  }
  EXPECT_GE(taken, limits::kMaxImageTasks);
  const auto refused =
      Workers::instance().run<int>("a", "x", kSecond, [] { return Result<int>(1); });
  EXPECT_THAT(refused.error(), testing::HasSubstr("too much waits"));
  Workers::instance().post_always("a", [&done] { ++done; });
  go.set_value();
  while (done != taken + 1) std::this_thread::yield();
}

// Tasks that hang until the test releases them.
class Hanging {
 public:
  void post(Workers& workers, const std::string& group, unsigned tasks) {
    for (unsigned i = 0; i < tasks; ++i) {
      ASSERT_TRUE(workers.post(group, [this, gone = gone_] {
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

// Whether a task of `group` runs while others hang.
bool runs(Workers& workers, const std::string& group) {
  return workers.run<int>(group, group, 10 * kSecond, [] { return Result<int>(1); }).ok();
}

TEST(Workers, AHangingGroupDoesNotBlockAnother) {
  Hanging hanging;
  Workers workers(limits::kImageThreads);
  hanging.post(workers, "a", limits::kImageThreads);
  EXPECT_TRUE(runs(workers, "b"));
  hanging.post(workers, "a", 4 * limits::kImageThreads);
  EXPECT_TRUE(runs(workers, "b"));
  hanging.release();
  EXPECT_TRUE(workers.stop(60 * kSecond));
}

TEST(Workers, ManyHangingGroupsDoNotBlockAnother) {
  constexpr unsigned kGroups = 3 * limits::kImageThreads;
  Hanging hanging;
  Workers workers(limits::kImageThreads);
  for (unsigned group = 0; group < kGroups; ++group) {
    hanging.post(workers, std::to_string(group), 2 * limits::kImageThreads);
  }
  EXPECT_TRUE(runs(workers, "b"));
  EXPECT_LE(hanging.begun, 2 * limits::kImageThreads + kGroups);
  hanging.release();
  EXPECT_TRUE(workers.stop(60 * kSecond));
  EXPECT_EQ(hanging.begun, kGroups * 2 * limits::kImageThreads);
}

TEST(Workers, ASingleGroupUsesAllItsThreadsAndNoMore) {
  Hanging hanging;
  Workers workers(limits::kImageThreads);
  hanging.post(workers, "a", 4 * limits::kImageThreads);
  while (hanging.begun < limits::kImageThreads) std::this_thread::yield();
  EXPECT_TRUE(runs(workers, "b"));
  EXPECT_EQ(hanging.begun, limits::kImageThreads);
  hanging.release();
  EXPECT_TRUE(workers.stop(60 * kSecond));
}

TEST(Workers, AFullQueueOfOneGroupDoesNotBlockOthers) {
  Hanging hanging;
  Workers one(1);
  hanging.post(one, "a", 1 + limits::kMaxImageTasks);
  EXPECT_FALSE(one.post("a", [] {}));
  EXPECT_TRUE(runs(one, "b"));
  hanging.release();
  EXPECT_TRUE(one.stop(60 * kSecond));
}

TEST(Workers, TheNextStepOfAStartedTaskRunsBeforeQueuedTasks) {
  Workers one(1);
  std::promise<void> go;
  std::string order;
  one.post("a", [gone = go.get_future().share()] { gone.wait(); });
  one.post("a", [&] { order += "first "; });
  one.post_next("a", [&] { order += "next "; });
  go.set_value();
  ASSERT_TRUE(one.stop(60 * kSecond));
  EXPECT_EQ(order, "next first ");
}

}  // namespace
}  // namespace sluice::rbd
