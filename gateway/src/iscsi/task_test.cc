#include "iscsi/task.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace sluice::iscsi {
namespace {

TEST(TaskPool, StopsAtItsLimitAndReusesReturnedTasks) {
  TaskPool pool(16);
  std::vector<Task*> taken;
  while (Task* t = pool.take()) taken.push_back(t);
  EXPECT_EQ(taken.size(), 16u);
  EXPECT_EQ(pool.in_use(), 16u);
  pool.give_back(taken.back());
  EXPECT_EQ(pool.take(), taken.back());
  for (Task* t : taken) pool.give_back(t);
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(TaskQueue, PreservesItsOrderWhicheverTaskIsRemoved) {
  for (const size_t removed : {0u, 1u, 2u}) {
    std::vector<Task> tasks(4);
    TaskQueue queue;
    for (size_t i = 0; i < 3; ++i) queue.push(&tasks[i]);
    queue.remove(&tasks[removed]);
    queue.remove(&tasks[removed]);
    queue.push(&tasks[3]);
    for (size_t i = 0; i < 4; ++i) {
      if (i == removed) continue;
      ASSERT_EQ(queue.front(), &tasks[i]) << "without task " << removed;
      queue.remove(queue.front());
    }
    EXPECT_TRUE(queue.empty());
  }
}

#ifndef NDEBUG
TEST(TaskDeathTest, AnAnsweredTaskCannotExecuteAgain) {
  Task task;
  task.enter(Task::State::kReceived);
  task.enter(Task::State::kExecuting);
  task.enter(Task::State::kAnswered);
  EXPECT_DEATH(task.enter(Task::State::kExecuting), "may_follow");
}

TEST(TaskDeathTest, AnAbortedTaskOnlyEnds) {
  Task task;
  task.enter(Task::State::kReceived);
  task.enter(Task::State::kExecuting);
  task.enter(Task::State::kAborting);
  EXPECT_DEATH(task.enter(Task::State::kNeedsData), "may_follow");
  EXPECT_DEATH(task.enter(Task::State::kAnswered), "may_follow");
  task.enter(Task::State::kFree);
}

TEST(TaskDeathTest, ATaskWaitsForR2tOnlyAfterItsAdmission) {
  Task task;
  task.enter(Task::R2t::kWaitsMemory);
  EXPECT_DEATH(task.enter(Task::R2t::kWaitsForR2t), "may_follow");
  task.enter(Task::R2t::kAdmitted);
  task.enter(Task::R2t::kWaitsForR2t);
  EXPECT_DEATH(task.enter(Task::R2t::kNone), "may_follow");
}
#endif

// Against std::map, with tags that collide on purpose.
TEST(TaskTable, FindsExactlyTheInsertedTasksThatAreNotErased) {
  constexpr uint32_t kTasks = 64;
  TaskTable table(kTasks);
  std::vector<Task> tasks(kTasks);
  std::map<uint32_t, Task*> model;
  std::vector<Task*> idle;
  for (Task& t : tasks) idle.push_back(&t);
  std::mt19937 random(7);
  for (int step = 0; step < 200000; ++step) {
    const uint32_t itt = random() % 97;  // few tags: many collisions and erasures in one cluster
    if (model.count(itt)) {
      ASSERT_EQ(table.find(itt), model[itt]);
      if (random() % 2) {
        table.erase(model[itt]);
        idle.push_back(model[itt]);
        model.erase(itt);
      }
    } else {
      ASSERT_EQ(table.find(itt), nullptr);
      if (idle.empty()) continue;
      Task* t = idle.back();
      idle.pop_back();
      t->itt = itt;
      table.insert(t);
      model[itt] = t;
    }
  }
  size_t seen = 0;
  table.for_each([&](Task* t) { seen += model[t->itt] == t; });
  EXPECT_EQ(seen, model.size());
}

}  // namespace
}  // namespace sluice::iscsi
