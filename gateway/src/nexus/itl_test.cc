#include "nexus/itl.h"

#include <gtest/gtest.h>

#include "nexus/lun_fixture.h"

namespace sluice::lun {
namespace {

class TaskSetTest : public LunTest {
 protected:
  void SetUp() override {
    LunTest::SetUp();
    nexus = open("a");
    backend->holds = true;
  }
  Task& read(uint64_t lba, TaskAttribute attribute = TaskAttribute::kSimple) {
    Task& task = make(read16(lba, 1));
    task.command.attribute = attribute;
    begin(*nexus, task);
    return task;
  }
  size_t submitted() const { return backend->held.size(); }

  std::shared_ptr<Nexus> nexus;
};

TEST_F(TaskSetTest, SimpleCommandsRunTogether) {
  read(0);
  read(1);
  read(2, TaskAttribute::kUntagged);
  EXPECT_EQ(submitted(), 3u);
}

TEST_F(TaskSetTest, AnOrderedCommandWaitsForAllOlderCommands) {
  read(0);
  read(1);
  Task& ordered = read(2, TaskAttribute::kOrdered);
  EXPECT_EQ(submitted(), 2u);
  backend->release_one();
  EXPECT_EQ(submitted(), 1u);
  backend->release_one();
  EXPECT_EQ(submitted(), 1u);
  EXPECT_FALSE(ordered.done());
  backend->release_one();
  EXPECT_TRUE(ordered.done());
}

TEST_F(TaskSetTest, NoYoungerCommandPassesAnOrderedCommand) {
  read(0);
  read(1, TaskAttribute::kOrdered);
  read(2);
  read(3);
  EXPECT_EQ(submitted(), 1u);
  backend->release_one();  // the first; now the ordered one runs alone
  EXPECT_EQ(submitted(), 1u);
  backend->release_one();
  EXPECT_EQ(submitted(), 2u);
}

TEST_F(TaskSetTest, OrderedCommandsRunOneByOneInOrder) {
  Task* tasks_in_order[4];
  for (uint64_t i = 0; i < 4; ++i) tasks_in_order[i] = &read(i, TaskAttribute::kOrdered);
  for (auto* task : tasks_in_order) {
    EXPECT_EQ(submitted(), 1u);
    EXPECT_FALSE(task->done());
    backend->release_one();
    EXPECT_TRUE(task->done());
  }
}

TEST_F(TaskSetTest, AHeadOfQueueCommandPassesAnOrderedCommand) {
  read(0);
  read(1, TaskAttribute::kOrdered);
  read(2);
  read(3, TaskAttribute::kHeadOfQueue);
  EXPECT_EQ(submitted(), 2u);
  EXPECT_EQ(backend->held.back()->offset, 3u * 512);
}

TEST_F(TaskSetTest, SimpleCommandsWaitForAHeadOfQueueCommand) {
  read(0, TaskAttribute::kHeadOfQueue);
  Task& simple = read(1);
  EXPECT_EQ(submitted(), 1u);
  backend->release_one();
  backend->release_one();
  EXPECT_TRUE(simple.done());
}

TEST_F(TaskSetTest, AnOrderedCommandWaitingForDataDelaysYoungerCommands) {
  Task& ordered = make(write16(0, 1), Bytes(512));
  ordered.command.attribute = TaskAttribute::kOrdered;
  ASSERT_TRUE(begin(*nexus, ordered));
  read(8);
  EXPECT_EQ(submitted(), 0u);
  send_data(*nexus, ordered);
  EXPECT_EQ(submitted(), 1u);
  backend->release_one();
  EXPECT_EQ(submitted(), 1u);
}

TEST_F(TaskSetTest, AnOrderedCommandDoesNotDelayOtherNexuses) {
  auto other = open("b", 1);
  read(0);
  read(1, TaskAttribute::kOrdered);
  start(*other, read16(2, 1));
  EXPECT_EQ(submitted(), 2u);
}

TEST_F(TaskSetTest, AbortingAnOrderedCommandStartsTheYoungerCommands) {
  read(0);
  Task& ordered = read(1, TaskAttribute::kOrdered);
  read(2);
  nexus->abort(ordered.command);
  EXPECT_TRUE(ordered.done());
  EXPECT_TRUE(ordered.command.aborted());
  EXPECT_EQ(submitted(), 2u);
}

TEST_F(TaskSetTest, AThousandBlockedCommandsCompleteWithoutRecursion) {
  read(0);
  Task& ordered = read(1, TaskAttribute::kOrdered);
  for (uint64_t i = 0; i < 1000; ++i) read(i, TaskAttribute::kOrdered);
  backend->holds = false;
  backend->release_all();
  EXPECT_TRUE(ordered.done());
  for (const auto& task : tasks) EXPECT_TRUE(task->done());
}

TEST_F(TaskSetTest, AnAbortedCommandInTheBackendEndsWhenTheBackendCompletesIt) {
  Task& task = read(0);
  nexus->abort(task.command);
  nexus->abort(task.command);
  EXPECT_FALSE(task.done());
  backend->release_one();
  EXPECT_TRUE(task.done());
  EXPECT_TRUE(task.command.aborted());
  EXPECT_TRUE(task.answer().empty());
}

}  // namespace
}  // namespace sluice::lun
