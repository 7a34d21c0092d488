#include "nexus/pipeline.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "nexus/cluster_fixture.h"
#include "unit/bandwidth.h"

namespace sluice::lun {
namespace {

class PipelineTest : public ClusterTest {
 protected:
  // Of an initiator that has seen the first unit attention.
  std::shared_ptr<Nexus> open_past_attention(const std::string& name) {
    auto opened = open(name);
    forget_attentions(*opened);
    return opened;
  }
  Task& begin_with(Nexus& on, TaskAttribute attribute, Bytes cdb, Bytes data = {}) {
    Task& task = make(std::move(cdb), std::move(data));
    task.command.attribute = attribute;
    if (begin(on, task)) send_data(on, task);
    return task;
  }
};

TEST_F(PipelineTest, ACommandWaitsInTheStageOfWhatItWaitsFor) {
  auto nexus = open_past_attention("a");
  Task& held = start(*nexus, read16(0, 8));
  EXPECT_EQ(held.command.stage, Stage::kHeld) << "no gateway owns the unit";
  serve_here(1);
  EXPECT_TRUE(held.done());
  EXPECT_EQ(held.command.stage, Stage::kDone);
  forget_attentions(*nexus);

  Task& write = make(write16(0, 8), Bytes(4096, 1));
  ASSERT_TRUE(begin(*nexus, write));
  EXPECT_EQ(write.command.stage, Stage::kAwaitingData);
  backend->holds = true;
  send_data(*nexus, write);
  EXPECT_EQ(write.command.stage, Stage::kRunning) << "the backend has it";
  Task& overlapping = start(*nexus, read16(0, 8));
  EXPECT_EQ(overlapping.command.stage, Stage::kWaitingForRange);
  Task& ordered = begin_with(*nexus, TaskAttribute::kOrdered, read16(64, 8));
  EXPECT_EQ(ordered.command.stage, Stage::kBlocked);
  Task& after = start(*nexus, read16(128, 8));
  EXPECT_EQ(after.command.stage, Stage::kBlocked) << "behind the ORDERED command";
  backend->holds = false;
  backend->release_all();
  for (const Task* task : {&write, &overlapping, &ordered, &after}) {
    EXPECT_TRUE(task->done());
    EXPECT_EQ(task->command.stage, Stage::kDone);
  }
}

TEST_F(PipelineTest, AForwardedCommandIsNotifiedOfItsAbortOnce) {
  auto nexus = open_past_attention("a");
  follow_to(2, 7);
  Task& read = start(*nexus, read16(0, 8));
  EXPECT_EQ(read.command.stage, Stage::kForwarded);
  nexus->abort(read.command);
  EXPECT_EQ(read.command.stage, Stage::kForwardedAborted);
  nexus->abort(read.command);
  EXPECT_EQ(links.last().aborted.size(), 1u);
}

// A limited unit charges a command when it is routed. If the task set blocks it after that, it is
// routed again, and must not be charged again.
TEST_F(PipelineTest, ABlockedCommandIsChargedOnce) {
  serve_here(8);
  auto nexus = open_past_attention("a");
  unit->set_qos({.iops = 10, .iops_burst = 2});
  backend->holds = true;
  Task& first = start(*nexus, read16(0, 8));
  Task& second = make(read16(8, 8));
  second.command.attribute = TaskAttribute::kOrdered;
  second.command.epoch = 8;  // forwarded to this gateway
  begin(*nexus, second);
  EXPECT_EQ(second.command.stage, Stage::kBlocked);
  backend->holds = false;
  backend->release_all();
  EXPECT_TRUE(first.done());
  EXPECT_TRUE(second.done()) << "the burst of two commands covers both";
}

TEST_F(PipelineTest, AnOrderedCommandWithoutAnOwnerDelaysNoOverdueAnswer) {
  auto nexus = open_past_attention("a");
  Task& ordered = begin_with(*nexus, TaskAttribute::kOrdered, read16(0, 8));
  Task& after = start(*nexus, read16(8, 8));
  now += limits::kHoldCommands;
  nexus->tick();
  EXPECT_EQ(ordered.sense(), kInTransition);
  EXPECT_EQ(after.sense(), kInTransition) << "both waited for an owner from the start";
}

TEST(StageTest, ACommandEndsFromEveryStageAndWaitsOnlyWhileItIsChecked) {
  constexpr std::array kAll = {
      Stage::kDone,      Stage::kEntered,          Stage::kAwaitingData,
      Stage::kHeld,      Stage::kBlocked,          Stage::kWaitingForRange,
      Stage::kForwarded, Stage::kForwardedAborted, Stage::kWaitingForChange,
      Stage::kRunning};
  for (const Stage from : kAll) {
    EXPECT_TRUE(may_follow(from, Stage::kDone));
    EXPECT_EQ(may_follow(from, Stage::kEntered), from == Stage::kDone);
    EXPECT_EQ(may_follow(from, Stage::kRunning), from != Stage::kDone);
    EXPECT_EQ(may_follow(from, Stage::kForwardedAborted), from == Stage::kForwarded);
    for (const Stage wait : {Stage::kAwaitingData, Stage::kHeld, Stage::kBlocked,
                             Stage::kWaitingForRange, Stage::kForwarded}) {
      EXPECT_EQ(may_follow(from, wait), from == Stage::kRunning);
    }
  }
}

#ifndef NDEBUG
TEST(StageDeathTest, AForbiddenTransitionStopsTheProgram) {
  Command command;
  EXPECT_DEATH(command.enter(Stage::kHeld), "may_follow");
}
#endif

}  // namespace
}  // namespace sluice::lun
