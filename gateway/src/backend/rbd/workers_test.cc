#include "rbd/workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/limits.h"

namespace sluice::rbd {
namespace {

TEST(Workers, WhatTakesTooLongIsToldAndItsResultIsDestroyed) {
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  auto result = std::make_shared<int>(7);
  std::weak_ptr<int> seen = result;
  const auto late = Workers::instance().run<std::shared_ptr<int>>(
      "pool/image", kMillisecond, [gone, result = std::move(result)]() mutable {
        gone.wait();
        return Result<std::shared_ptr<int>>(std::move(result));
      });
  ASSERT_FALSE(late.ok());
  EXPECT_THAT(late.error(), testing::HasSubstr("pool/image: Ceph didn't answer within"));
  EXPECT_FALSE(seen.expired());
  go.set_value();
  while (!seen.expired()) std::this_thread::yield();
}

TEST(Workers, BeyondTheBoundOnlyWhatMustBeDoneIsTaken) {
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  std::atomic<unsigned> done = 0;
  unsigned taken = 0;
  while (Workers::instance().post([gone, &done] {
    gone.wait();
    ++done;
  })) {
    ++taken;
    ASSERT_LE(taken, limits::kMaxImageTasks + limits::kImageThreads);
  }
  EXPECT_GE(taken, limits::kMaxImageTasks);
  const auto refused = Workers::instance().run<int>("x", kSecond, [] { return Result<int>(1); });
  EXPECT_THAT(refused.error(), testing::HasSubstr("too much waits"));
  Workers::instance().post_always([&done] { ++done; });
  go.set_value();
  while (done != taken + 1) std::this_thread::yield();
}

TEST(Workers, TheNextStepOfWhatWasBegunGoesBeforeTheFirstOfOthers) {
  Workers one(1);
  std::promise<void> go;
  std::string order;
  one.post([gone = go.get_future().share()] { gone.wait(); });
  one.post([&] { order += "first "; });
  one.post_next([&] { order += "next "; });
  go.set_value();
  ASSERT_TRUE(one.stop(60 * kSecond));
  EXPECT_EQ(order, "next first ");
}

}  // namespace
}  // namespace sluice::rbd
