#include "base/executor_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace sluice {
namespace {

using Thread = ExecutorQueue::Thread;
using Strand = ExecutorQueue::Strand;
using Wake = ExecutorQueue::Wake;
using What = ExecutorQueue::Next::What;
using Where = ExecutorQueue::Where;

constexpr unsigned kThreads = 4;  // of one group

class ExecutorQueueTest : public testing::Test {
 protected:
  bool post(const Strand& strand, Nanos due = 0, Nanos now = 0) {
    ExecutorQueue::Task task = [] {};
    return queue_.post(strand, task, Where::kLast, ExecutorQueue::kNoBound, due, now);
  }
  bool post_bounded(const std::string& group, size_t bound, Where where = Where::kLast) {
    ExecutorQueue::Task task = [] {};
    return queue_.post({group}, task, where, bound, 0, 0);
  }
  // Posts in the group "g", which most tests use.
  void post_in_g(const std::string& strand, Nanos due = 0, Nanos now = 0) {
    post({"g", strand}, due, now);
  }
  // Started threads that wait, the highest number last.
  void all_wait(size_t threads) {
    for (Thread thread = 0; thread < threads; ++thread) {
      post({std::to_string(thread)});
      EXPECT_EQ(queue_.wake(), (Wake{thread, true}));
      EXPECT_EQ(queue_.next(thread, 0).what, What::kRun);
    }
    for (Thread thread = 0; thread < threads; ++thread) {
      queue_.ended({std::to_string(thread)});
      EXPECT_EQ(queue_.next(thread, 0).what, What::kWait);
      EXPECT_FALSE(queue_.wake());
    }
  }
  // The strand or, without one, the group of the task that the thread begins; empty: none.
  std::string begins(Thread thread, Nanos now = 0) {
    const ExecutorQueue::Next next = queue_.next(thread, now);
    if (next.what != What::kRun) return "";
    return next.strand.name.empty() ? next.strand.group : next.strand.name;
  }
  // Threads start and begin tasks that hang, until no more start. Returns the groups of the tasks.
  std::vector<std::string> hang() {
    std::vector<std::string> groups;
    while (const std::optional<Wake> wake = queue_.wake()) {
      const ExecutorQueue::Next next = queue_.next(wake->thread, 0);
      if (next.what == What::kRun) groups.push_back(next.strand.group);
    }
    return groups;
  }

  ExecutorQueue queue_{kThreads};
};

// --- wake-ups

TEST_F(ExecutorQueueTest, OneThreadIsWokenForManyPosts) {
  all_wait(4);
  post_in_g("a");
  EXPECT_EQ(queue_.wake(), (Wake{3, false}));
  for (const char* strand : {"b", "c", "d"}) {
    post_in_g(strand);
    EXPECT_FALSE(queue_.wake());
  }
}

TEST_F(ExecutorQueueTest, OneThreadStartsForManyPosts) {
  post_in_g("a");
  EXPECT_EQ(queue_.wake(), (Wake{0, true}));
  for (const char* strand : {"b", "c", "d"}) {
    post_in_g(strand);
    EXPECT_FALSE(queue_.wake());
  }
}

TEST_F(ExecutorQueueTest, AThreadThatStartsATaskWakesAnotherOnlyIfMoreTasksAreReady) {
  all_wait(3);
  post_in_g("a");
  EXPECT_EQ(queue_.wake(), (Wake{2, false}));
  post_in_g("b");
  EXPECT_EQ(begins(2), "a");
  EXPECT_EQ(queue_.wake(), (Wake{1, false}));
  EXPECT_EQ(begins(1), "b");
  EXPECT_FALSE(queue_.wake());
}

TEST_F(ExecutorQueueTest, AThreadThatEndsATaskRunsTheNextAndWakesNoOther) {
  all_wait(2);
  post_in_g("a");
  EXPECT_EQ(queue_.wake(), (Wake{1, false}));
  EXPECT_EQ(begins(1), "a");
  for (int i = 0; i < 100; ++i) {
    post_in_g("a");  // the strand runs: none of its tasks is ready
    EXPECT_FALSE(queue_.wake());
  }
  for (int i = 0; i < 100; ++i) {
    queue_.ended({"g", "a"});
    EXPECT_EQ(begins(1), "a");
    EXPECT_FALSE(queue_.wake());
  }
}

TEST_F(ExecutorQueueTest, NoThreadIsWokenForAGroupThatMayHaveNoMore) {
  for (unsigned i = 0; i < kThreads; ++i) post({"g"});
  EXPECT_EQ(hang().size(), kThreads);
  post({"g"});
  EXPECT_FALSE(queue_.wake());
  queue_.ended({"g"});
  EXPECT_EQ(begins(0), "g") << "the thread that ended a task takes it";
}

// --- the clock keeper

TEST_F(ExecutorQueueTest, OneIdleThreadIsTheClockKeeperAndTheOthersWaitWithoutATimeout) {
  all_wait(3);
  post_in_g("a", 10);
  EXPECT_EQ(queue_.wake(), (Wake{2, false}));
  EXPECT_EQ(queue_.next(2, 0).until, 10);
  EXPECT_FALSE(queue_.next(1, 0).until);
  EXPECT_FALSE(queue_.next(0, 0).until);
  post_in_g("b", 20);
  EXPECT_FALSE(queue_.wake()) << "later than what is waited for";
}

TEST_F(ExecutorQueueTest, AThreadStartsForADelayedTask) {
  post_in_g("a", 10);
  EXPECT_EQ(queue_.wake(), (Wake{0, true}));
  EXPECT_EQ(queue_.next(0, 0).until, 10);
}

TEST_F(ExecutorQueueTest, AClockKeeperThatStartsATaskIsReplacedIfADelayedTaskExists) {
  all_wait(2);
  post_in_g("a", 10);
  post_in_g("b", 20);
  EXPECT_EQ(queue_.next(0, 0).until, 10);
  EXPECT_FALSE(queue_.next(1, 0).until);
  EXPECT_EQ(begins(0, 10), "a");
  EXPECT_EQ(queue_.wake(), (Wake{1, false}));
  EXPECT_EQ(queue_.next(1, 10).until, 20);
  queue_.ended({"g", "a"});
  EXPECT_FALSE(queue_.next(0, 11).until);
  EXPECT_EQ(begins(1, 20), "b");
  EXPECT_FALSE(queue_.wake()) << "nothing is due later";
}

TEST_F(ExecutorQueueTest, TheClockKeeperIsWokenForAnEarlierTask) {
  all_wait(2);
  post_in_g("a", 20);
  EXPECT_EQ(queue_.next(0, 0).until, 20);
  EXPECT_FALSE(queue_.next(1, 0).until);
  post_in_g("b", 10);
  EXPECT_EQ(queue_.wake(), (Wake{0, false}));
  EXPECT_EQ(queue_.next(0, 1).until, 10);
}

TEST_F(ExecutorQueueTest, AThreadThatCallsNextBecomesTheClockKeeperForAnEarlierTask) {
  all_wait(2);
  post_in_g("a", 20);
  EXPECT_EQ(queue_.next(0, 0).until, 20);
  EXPECT_FALSE(queue_.next(1, 0).until);
  post_in_g("b");
  EXPECT_EQ(queue_.wake(), (Wake{1, false}));
  post_in_g("c", 10);
  EXPECT_FALSE(queue_.wake()) << "one is on its way";
  EXPECT_EQ(begins(1), "b");
  EXPECT_EQ(queue_.wake(), (Wake{0, false})) << "it waits for too long";
  queue_.ended({"g", "b"});
  EXPECT_EQ(queue_.next(1, 1).until, 10);
  EXPECT_FALSE(queue_.next(0, 1).until);
}

TEST_F(ExecutorQueueTest, TheOnlyIdleThreadRunsATaskAndAnotherBecomesTheClockKeeper) {
  post_in_g("a", 10);
  EXPECT_EQ(queue_.wake(), (Wake{0, true}));
  EXPECT_EQ(queue_.next(0, 0).until, 10);
  post_in_g("b");
  EXPECT_EQ(queue_.wake(), (Wake{0, false}));
  EXPECT_EQ(begins(0), "b");
  EXPECT_EQ(queue_.wake(), (Wake{1, true}));
  EXPECT_EQ(queue_.next(1, 0).until, 10);
  queue_.ended({"g", "b"});
  EXPECT_FALSE(queue_.next(0, 1).until);
}

// --- order

TEST_F(ExecutorQueueTest, NoTaskOvertakesAnEarlierDueTask) {
  std::string order;
  ExecutorQueue::Task first = [&] { order += "1"; };
  ExecutorQueue::Task second = [&] { order += "2"; };
  queue_.post({"g", "a"}, first, Where::kLast, 1, 10, 0);
  queue_.post({"g", "a"}, second, Where::kLast, 9, 11, 11);
  for (int i = 0; i < 2; ++i) {
    queue_.next(0, 11).task();
    queue_.ended({"g", "a"});
  }
  EXPECT_EQ(order, "12");
}

TEST_F(ExecutorQueueTest, ATaskPostedFirstBeginsBeforeAllOthersOfItsGroup) {
  post_in_g("strand");
  post({"g"});
  post_bounded("g", 9, Where::kFirst);
  EXPECT_EQ(begins(0), "g");
  EXPECT_EQ(begins(1), "strand");
}

TEST_F(ExecutorQueueTest, StrandsOfTheSameNameInTwoGroupsRunInParallel) {
  post({"a", "s"});
  post({"b", "s"});
  EXPECT_EQ(begins(0), "s");
  EXPECT_EQ(begins(1), "s");
}

TEST_F(ExecutorQueueTest, ATaskBeyondTheBoundIsRefusedAndUnchanged) {
  int ran = 0;
  ExecutorQueue::Task task = [&] { ++ran; };
  EXPECT_TRUE(post_bounded("g", 2));
  EXPECT_TRUE(post_bounded("g", 2));
  EXPECT_FALSE(queue_.post({"g"}, task, Where::kLast, 2, 0, 0));
  task();
  EXPECT_EQ(ran, 1);
  EXPECT_FALSE(post_bounded("g", 2, Where::kFirst));
  EXPECT_TRUE(post({"g"})) << "without a bound";
  EXPECT_EQ(begins(0), "g");
  EXPECT_EQ(begins(1), "g");
  EXPECT_TRUE(post_bounded("g", 2)) << "running tasks do not wait";
  EXPECT_FALSE(post_bounded("g", 2));
  EXPECT_TRUE(post_bounded("other", 2)) << "each group has its own bound";
}

// --- shares of the groups

TEST_F(ExecutorQueueTest, AGroupGetsAllItsThreadsAndNoMore) {
  for (unsigned i = 0; i < 4 * kThreads; ++i) post({"g"});
  EXPECT_EQ(hang().size(), kThreads);
  EXPECT_EQ(queue_.threads(), kThreads);
}

TEST_F(ExecutorQueueTest, EachGroupGetsAThreadWhateverHangs) {
  constexpr unsigned kGroups = 50;
  for (unsigned group = 0; group < kGroups; ++group) {
    for (unsigned i = 0; i < 2 * kThreads; ++i) post({std::to_string(group)});
    const std::vector<std::string> begun = hang();
    EXPECT_GE(std::count(begun.begin(), begun.end(), std::to_string(group)), 1);
  }
  EXPECT_LE(queue_.threads(), 2 * kThreads + kGroups);
}

TEST_F(ExecutorQueueTest, TheGroupWithTheFewestRunningTasksIsNext) {
  for (unsigned i = 0; i < 2; ++i) post({"a"});
  EXPECT_EQ(hang(), (std::vector<std::string>{"a", "a"}));
  post({"a"});
  post({"b"});
  post({"c"});
  post({"b"});
  EXPECT_EQ(hang(), (std::vector<std::string>{"b", "c", "b", "a"}));
}

// --- the end of threads

TEST_F(ExecutorQueueTest, ThreadsBeyondThoseOfOneGroupEndWhenTheyAreIdle) {
  constexpr unsigned kGroups = 20;
  for (unsigned group = 0; group < kGroups; ++group) post({std::to_string(group)});
  EXPECT_EQ(hang().size(), kGroups);
  for (unsigned group = 0; group < kGroups; ++group) {
    queue_.ended({std::to_string(group)});
    EXPECT_EQ(queue_.next(group, 0).what, group < kThreads ? What::kWait : What::kEnd);
  }
  EXPECT_EQ(queue_.threads(), kThreads);
}

TEST_F(ExecutorQueueTest, AThreadThatFinishesRunsWhatIsQueuedButNoDelayedTask) {
  post({"g"});
  EXPECT_EQ(hang().size(), 1u);
  post_in_g("a");
  post_in_g("b", 10);
  queue_.finish();
  queue_.ended({"g"});
  EXPECT_EQ(begins(0, 20), "a");
  EXPECT_FALSE(queue_.wake());
  queue_.ended({"g", "a"});
  EXPECT_EQ(queue_.next(0, 20).what, What::kEnd);
  EXPECT_EQ(queue_.take_all().size(), 1u);
}

TEST_F(ExecutorQueueTest, NoTaskBeginsAfterTheEnd) {
  post({"g"});
  EXPECT_EQ(hang().size(), 1u);
  post({"g"});
  post_in_g("a");
  post_in_g("a");
  post_in_g("b", 10);
  queue_.end();
  EXPECT_FALSE(queue_.wake());
  queue_.ended({"g"});
  EXPECT_EQ(queue_.next(0, 20).what, What::kEnd);
  EXPECT_EQ(queue_.take_all().size(), 4u);
}

TEST_F(ExecutorQueueTest, ForAThreadThatDidNotStartAnotherOneIsStartedAtTheNextPost) {
  post_in_g("a");
  EXPECT_EQ(queue_.wake(), (Wake{0, true}));
  queue_.not_started(0);
  EXPECT_EQ(queue_.threads(), 0u);
  post_in_g("b");
  EXPECT_EQ(queue_.wake(), (Wake{0, true}));
  EXPECT_EQ(begins(0), "a");
  EXPECT_EQ(queue_.wake(), (Wake{1, true})) << "for the second task";
  queue_.not_started(1);
  queue_.ended({"g", "a"});
  EXPECT_EQ(begins(0), "b") << "the thread that is there runs both";
}

}  // namespace
}  // namespace sluice
