#include "base/sequence.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace sluice {
namespace {

using Done = std::function<void()>;

// Events that the test causes.
struct Events {
  Done first;
  Done second;
};

Sequence two_steps(Events& events, std::shared_ptr<std::string> log) {
  *log += "start ";
  co_await Until([&events](Done done) { events.first = std::move(done); });
  *log += "first ";
  co_await Until([&events](Done done) { events.second = std::move(done); });
  *log += "second";
}

TEST(SequenceTest, RunsFromWaitToWait) {
  Events events;
  const auto log = std::make_shared<std::string>();
  two_steps(events, log);
  EXPECT_EQ(*log, "start ");
  std::exchange(events.first, nullptr)();
  EXPECT_EQ(*log, "start first ");
  std::exchange(events.second, nullptr)();
  EXPECT_EQ(*log, "start first second");
  EXPECT_EQ(log.use_count(), 1) << "the sequence has released its arguments";
}

TEST(SequenceTest, ReleasesItsArgumentsIfItsEventCannotComeAnyMore) {
  Events events;
  const auto log = std::make_shared<std::string>();
  two_steps(events, log);
  EXPECT_EQ(log.use_count(), 2);
  events.first = nullptr;
  EXPECT_EQ(log.use_count(), 1);
  EXPECT_EQ(*log, "start ");
}

Sequence immediate(int& count) {
  for (int i = 0; i < 3; ++i) {
    co_await Until([](const Done& done) { done(); });
    ++count;
  }
}

TEST(SequenceTest, TheEventMayComeWithinTheStart) {
  int count = 0;
  immediate(count);
  EXPECT_EQ(count, 3);
}

Sequence count_to(int last, int& count, Done& next) {
  while (count < last) {
    co_await Until([&next](Done done) { next = std::move(done); });
    ++count;
  }
}

// ThreadSanitizer sees an access to the wait after the sequence continued on another thread.
TEST(SequenceTest, ContinuesOnTheThreadOfTheEvent) {
  int count = 0;
  Done next;
  count_to(20, count, next);
  while (next) std::thread(std::exchange(next, nullptr)).join();
  EXPECT_EQ(count, 20);
}

}  // namespace
}  // namespace sluice
