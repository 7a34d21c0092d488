#include <gtest/gtest.h>

#include "base/limits.h"
#include "nexus/lun_fixture.h"
#include "unit/abort_everywhere.h"

namespace sluice::lun {
namespace {

using scsi::Status;

class TaskManagementTest : public LunTest {
 protected:
  void SetUp() override {
    LunTest::SetUp();
    a = open("a", 0);
    b = open("b", 1);
    backend->holds = true;
  }
  auto note() {
    return [this](auto...) { ++finished; };
  }

  std::shared_ptr<Nexus> a;
  std::shared_ptr<Nexus> b;
  int finished = 0;
  int ended = 0;
};

TEST_F(TaskManagementTest, LogicalUnitResetWaitsForTheIoOfEveryNexus) {
  Task& mine = start(*a, read16(0, 1));
  Task& theirs = start(*b, read16(8, 1));
  EXPECT_TRUE(a->logical_unit_reset(0, note()));
  reactors.run();
  EXPECT_EQ(finished, 0);
  backend->release_one();
  reactors.run();
  EXPECT_EQ(finished, 0);
  backend->release_one();
  EXPECT_TRUE(mine.done() && theirs.done());
  reactors.run();
  EXPECT_EQ(finished, 1);
}

TEST_F(TaskManagementTest, AResetEndsOtherNexusesCommandsWithTaskAbortedAndItsOwnWithoutStatus) {
  Task& mine = make(write16(0, 1), Bytes(512));
  Task& theirs = make(write16(8, 1), Bytes(512));
  ASSERT_TRUE(begin(*a, mine) && begin(*b, theirs));
  a->logical_unit_reset(0, note());
  reactors.run();
  EXPECT_TRUE(mine.done() && mine.command.abort == Abort::kSilent);
  EXPECT_TRUE(theirs.done() && theirs.command.abort == Abort::kWithStatus);
  EXPECT_EQ(theirs.command.status, Status::kTaskAborted);
  EXPECT_EQ(finished, 1);
}

TEST_F(TaskManagementTest, AResetIsReportedToEveryNexus) {
  a->logical_unit_reset(0, note());
  reactors.run();
  EXPECT_EQ(start(*a, test_unit_ready()).sense(), 0x062903u);
  EXPECT_EQ(start(*b, test_unit_ready()).sense(), 0x062903u);
}

TEST_F(TaskManagementTest, AResetStartsAStoppedUnitAndUndoesModeParameters) {
  unit->set_stopped(true);
  unit->set_mode({.descriptor_sense = true, .software_write_protect = true});
  a->logical_unit_reset(0, note());
  reactors.run();
  EXPECT_EQ(unit->gate(), 0u);
  EXPECT_FALSE(unit->descriptor_sense());
}

TEST_F(TaskManagementTest, AResetCompletesAsynchronously) {
  a->logical_unit_reset(0, note());
  EXPECT_EQ(finished, 0);
  reactors.run();
  EXPECT_EQ(finished, 1);
}

TEST_F(TaskManagementTest, AResetDoesNotWaitForLaterCommands) {
  start(*a, read16(0, 1));
  a->logical_unit_reset(0, note());
  reactors.run();
  start(*a, test_unit_ready());
  Task& later = start(*a, read16(16, 1));
  backend->release_one();
  reactors.run();
  EXPECT_EQ(finished, 1);
  EXPECT_FALSE(later.done());
}

TEST_F(TaskManagementTest, AbortTaskSetDoesNotAffectOtherNexuses) {
  Task& mine = start(*a, read16(0, 1));
  Task& theirs = start(*b, read16(8, 1));
  EXPECT_TRUE(a->abort_task_set(0, note()));
  reactors.run();
  EXPECT_EQ(finished, 0);
  backend->release_all();
  reactors.run();
  EXPECT_EQ(finished, 1);
  EXPECT_TRUE(mine.command.aborted());
  EXPECT_FALSE(theirs.command.aborted());
  EXPECT_EQ(theirs.command.status, Status::kGood);
}

TEST_F(TaskManagementTest, ClearTaskSetAbortsOnlyTheTasksOfItsNexus) {
  Task& mine = start(*a, read16(0, 1));
  Task& theirs = start(*b, read16(8, 1));
  EXPECT_TRUE(a->clear_task_set(0, note()));
  backend->release_all();
  reactors.run();
  EXPECT_EQ(finished, 1);
  EXPECT_TRUE(mine.command.aborted());
  EXPECT_FALSE(theirs.command.aborted());
  EXPECT_EQ(start(*b, test_unit_ready()).command.status, Status::kGood);
}

TEST_F(TaskManagementTest, FunctionsOnALunThatDoesNotExistFail) {
  const uint64_t lun = uint64_t{9} << 48;
  EXPECT_FALSE(a->abort_task_set(lun, note()));
  EXPECT_FALSE(a->clear_task_set(lun, note()));
  EXPECT_FALSE(a->logical_unit_reset(lun, note()));
  reactors.run();
  EXPECT_EQ(finished, 0);
}

TEST_F(TaskManagementTest, ATargetResetOfAUnitWithTwoLunsResetsItOnce) {
  target->set_luns({{0, unit}, {1, unit}}, reactors);
  reactors.run();
  start(*a, report_luns());
  start(*b, report_luns());
  Task& theirs = make(write16(8, 1), Bytes(512), uint64_t{1} << 48);
  ASSERT_TRUE(begin(*b, theirs));
  a->target_reset(note());
  reactors.run();
  EXPECT_EQ(finished, 1);
  EXPECT_EQ(theirs.command.status, Status::kTaskAborted);
  EXPECT_EQ(start(*a, test_unit_ready()).sense(), 0x062903u);
  EXPECT_EQ(start(*a, test_unit_ready()).command.status, Status::kGood) << "reset once";
}

TEST_F(TaskManagementTest, AWriteWaitingForABlockIsAbortedImmediatelyAndDoesNotRun) {
  Task& first = start(*a, write16(0, 1), Bytes(512, 1));
  Task& second = start(*b, write16(0, 1), Bytes(512, 2));
  b->abort(second.command);
  EXPECT_TRUE(second.done());
  backend->release_all();
  reactors.run();
  EXPECT_TRUE(first.done());
  EXPECT_EQ(backend->data[0], 1);
  EXPECT_EQ(backend->submitted.size(), 1u);
}

// DESIGN R5: an aborted write keeps its blocks until the backend has completed it.
TEST_F(TaskManagementTest, AnAbortedWriteLocksItsBlocksUntilTheBackendCompletesIt) {
  Task& first = start(*a, write16(0, 1), Bytes(512, 1));
  a->abort(first.command);
  Task& second = start(*b, write16(0, 1), Bytes(512, 2));
  EXPECT_EQ(backend->held.size(), 1u);
  backend->release_one();
  reactors.run();
  ASSERT_EQ(backend->held.size(), 1u);
  backend->release_one();
  reactors.run();
  EXPECT_TRUE(second.done());
  EXPECT_EQ(backend->data[0], 2);
}

// simulation/detached_commands_test.cc has what the transport does with such commands.
TEST_F(TaskManagementTest, AResetDoesNotWaitLongerThanTheBoundForTheBackend) {
  Task& mine = start(*a, read16(0, 1));
  Task& theirs = start(*b, read16(8, 1));
  mine.command.on_detached = [](Command& c) { ++static_cast<Task*>(c.context)->detached; };
  a->logical_unit_reset(0, note());
  reactors.run();
  now += limits::kAbortBound - 1;
  for (const auto& nexus : {a, b}) nexus->tick();
  reactors.run();
  EXPECT_EQ(finished, 0);
  now += 1;
  for (const auto& nexus : {a, b}) nexus->tick();
  reactors.run();
  EXPECT_EQ(finished, 1);
  EXPECT_EQ(mine.detached, 1);
  EXPECT_FALSE(mine.done() || theirs.done()) << "the backend has them";
  backend->release_all();
  EXPECT_TRUE(mine.done());
  EXPECT_EQ(theirs.command.status, Status::kTaskAborted);
}

// A cluster that fences a host by PREEMPT AND ABORT relies on the end of that host's writes.
TEST_F(TaskManagementTest, AbortEverywhereWaitsForTheBackendUnlessItsScopeSaysOtherwise) {
  start(*a, write16(0, 1), Bytes(512));
  abort_everywhere(*unit, reactors, 0, {.by = &b->id()}, note());
  reactors.run();
  now += 2 * limits::kAbortBound;
  a->tick();
  reactors.run();
  EXPECT_EQ(finished, 0);
  backend->release_all();
  reactors.run();
  EXPECT_EQ(finished, 1);
}

TEST_F(TaskManagementTest, ACloseReportsTheEndOfTheNexusBeforeTheBackendHasReleasedItsCommands) {
  start(*a, read16(0, 1));
  a->close(true, note(), [&] { ++ended; });
  reactors.run();
  EXPECT_EQ(ended, 0);
  now += limits::kAbortBound;
  a->tick();
  reactors.run();
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(finished, 0);
  backend->release_all();
  reactors.run();
  EXPECT_EQ(finished, 1);
}

TEST_F(TaskManagementTest, AbortEverywhereSparesTheRequestingCommandAndDoesNotWaitForIt) {
  Task& asking = start(*a, read16(0, 1));
  Task& mine = start(*a, read16(8, 1));
  abort_everywhere(*unit, reactors, 0,
                   {.by = &a->id(), .include_own = true, .except = &asking.command}, note());
  reactors.run();
  EXPECT_EQ(finished, 0);
  backend->held.push_back(backend->held.front());
  backend->held.pop_front();
  backend->release_one();  // the other one
  reactors.run();
  EXPECT_TRUE(mine.command.aborted());
  EXPECT_EQ(finished, 1);
  EXPECT_FALSE(asking.done());
  EXPECT_FALSE(asking.command.aborted());
}

TEST_F(TaskManagementTest, AbortEverywhereAbortsOnlyTheSelectedNexuses) {
  Task& mine = start(*a, read16(0, 1));
  Task& theirs = start(*b, read16(8, 1));
  abort_everywhere(*unit, reactors, 0,
                   {.by = &a->id(), .which = [&](const NexusId& id) { return id == b->id(); }},
                   note());
  reactors.run();
  backend->release_all();
  reactors.run();
  EXPECT_EQ(finished, 1);
  EXPECT_FALSE(mine.command.aborted());
  EXPECT_EQ(theirs.command.status, Status::kTaskAborted);
}

}  // namespace
}  // namespace sluice::lun
