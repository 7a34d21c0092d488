#include "rbd/ceph_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include "base/limits.h"

namespace sluice::rbd {
namespace {

TEST(CephExecutor, AnOverdueTaskIsReportedAndItsLateResultIsDestroyed) {
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  auto result = std::make_shared<int>(7);
  std::weak_ptr<int> seen = result;
  const auto late = wait_for_ceph<std::shared_ptr<int>>(
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

TEST(CephExecutor, BeyondTheQueueLimitOnlyMandatoryTasksAreAccepted) {
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  std::atomic<unsigned> begun = 0;
  std::atomic<unsigned> done = 0;
  const auto hang = [gone, &begun, &done] {
    ++begun;
    gone.wait();
    ++done;
  };
  unsigned taken = 0;
  // Once every thread of the group hangs, no queued task begins.
  for (; taken < limits::kImageThreads; ++taken) ASSERT_TRUE(ceph_executor().try_post({"a"}, hang));
  while (begun != limits::kImageThreads) std::this_thread::yield();
  for (unsigned i = 0; i < limits::kMaxImageTasks; ++i, ++taken) {
    ASSERT_TRUE(ceph_executor().try_post({"a"}, hang));
  }
  EXPECT_FALSE(ceph_executor().try_post({"a"}, hang));
  const auto refused = wait_for_ceph<int>("a", "x", kSecond, [] { return Result<int>(1); });
  EXPECT_THAT(refused.error(), testing::HasSubstr("too much waits"));
  EXPECT_TRUE(wait_for_ceph<int>("b", "x", 10 * kSecond, [] { return Result<int>(1); }).ok());
  ceph_executor().post({"a"}, [&done] { ++done; });
  go.set_value();
  while (done != taken + 1) std::this_thread::yield();
}

}  // namespace
}  // namespace sluice::rbd
