// A unit whose backend has requests and completes none: it is found to be stuck, and accepts no
// more commands for the medium than limits::kMaxStuckRequests (SAM-5 §5.3.1: BUSY).
#include <gtest/gtest.h>

#include "base/limits.h"
#include "nexus/lun_fixture.h"

namespace sluice::lun {
namespace {

using scsi::Status;

class StuckUnit : public LunTest {
 protected:
  void SetUp() override {
    LunTest::SetUp();
    a = open("a", 0);
    b = open("b", 1);
    backend->holds = true;
  }
  // True: whether it is stuck has changed.
  bool poll_after(Nanos span) {
    now += span;
    const bool before = unit->stuck();
    unit->poll_progress(now);
    return unit->stuck() != before;
  }
  // `count` reads of blocks that no other command uses, by both nexuses.
  void read(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) start(i % 2 == 0 ? *a : *b, read16(next_block++, 1));
  }
  void become_stuck() {
    poll_after(0);
    EXPECT_TRUE(poll_after(limits::kUnitStuck));
    ASSERT_TRUE(unit->stuck());
  }
  Status status_of(Bytes cdb, Bytes data = {}) {
    Task& task = start(*a, std::move(cdb), std::move(data));
    EXPECT_TRUE(task.done());
    return task.command.status;
  }

  std::shared_ptr<Nexus> a;
  std::shared_ptr<Nexus> b;
  uint64_t next_block = 0;
  int finished = 0;
};

TEST_F(StuckUnit, IsFoundOnceAndEndsWithTheNextCompletion) {
  read(2);
  EXPECT_FALSE(poll_after(0));
  EXPECT_FALSE(poll_after(limits::kUnitStuck - 1));
  EXPECT_FALSE(unit->medium_health().stuck);
  EXPECT_TRUE(poll_after(1));
  EXPECT_TRUE(unit->medium_health().stuck);
  EXPECT_TRUE(unit->medium_health().ready) << "commands wait, and get no error";
  EXPECT_FALSE(poll_after(limits::kUnitStuck));
  backend->release_one();
  EXPECT_TRUE(poll_after(0));
  EXPECT_FALSE(unit->medium_health().stuck);
}

TEST_F(StuckUnit, IsNotOneThatIsIdleOrCompletesOneRequestAfterTheOther) {
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(poll_after(limits::kUnitStuck));
  read(1);
  for (int i = 0; i < 10; ++i) {
    read(1);
    EXPECT_FALSE(poll_after(limits::kUnitStuck - 1)) << i;
    backend->release_one();
  }
  EXPECT_FALSE(poll_after(limits::kUnitStuck - 1));
  backend->release_all();
  EXPECT_FALSE(poll_after(limits::kUnitStuck));
  read(1);
  EXPECT_FALSE(poll_after(limits::kUnitStuck)) << "the time that it was idle counts";
  EXPECT_FALSE(poll_after(limits::kUnitStuck - 1));
}

TEST_F(StuckUnit, ReportsARequestThatHangsAmongOthersAndAcceptsMore) {
  read(1);
  poll_after(0);
  const Nanos begun = now;
  while (!unit->medium_hangs() && now - begun < 2 * limits::kRequestHung) {
    read(1);
    EXPECT_FALSE(poll_after(kSecond));
    backend->release_last();
  }
  EXPECT_GE(now - begun, limits::kRequestHung);
  EXPECT_TRUE(unit->medium_health().stuck);
  EXPECT_FALSE(unit->stuck()) << "others complete, so it has no limit";
  backend->release_all();
  poll_after(0);
  EXPECT_FALSE(unit->medium_health().stuck);
}

// A host that sends no data is no matter of the medium.
TEST_F(StuckUnit, IsNotOneWhoseCommandsWaitForData) {
  Task& write = make(write16(0, 1), Bytes(512));
  ASSERT_TRUE(begin(*a, write));
  poll_after(0);
  EXPECT_FALSE(poll_after(2 * limits::kUnitStuck));
}

TEST_F(StuckUnit, AnswersBusyBeyondItsLimitToEveryNexus) {
  read(limits::kMaxStuckRequests - 1);
  become_stuck();
  read(1);
  EXPECT_FALSE(tasks.back()->done()) << "within the limit commands wait";
  EXPECT_EQ(status_of(read16(next_block, 1)), Status::kBusy);
  EXPECT_EQ(status_of(write16(next_block, 1), Bytes(512)), Status::kBusy);
  EXPECT_EQ(status_of({0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0}), Status::kBusy) << "SYNCHRONIZE CACHE";
  Task& theirs = start(*b, read16(next_block, 1));
  EXPECT_TRUE(theirs.done());
  EXPECT_EQ(theirs.command.status, Status::kBusy);
  EXPECT_EQ(backend->held.size(), limits::kMaxStuckRequests);
}

TEST_F(StuckUnit, AnswersCommandsThatNeedNoMedium) {
  read(limits::kMaxStuckRequests);
  become_stuck();
  EXPECT_EQ(status_of(test_unit_ready()), Status::kGood);
  EXPECT_EQ(status_of(inquiry()), Status::kGood);
}

TEST_F(StuckUnit, HasNoLimitWhileItIsNotStuck) {
  read(2 * limits::kMaxStuckRequests);
  EXPECT_EQ(backend->held.size(), 2 * limits::kMaxStuckRequests);
  become_stuck();
  backend->release_one();
  EXPECT_TRUE(poll_after(0));
  read(1);
  EXPECT_EQ(backend->held.size(), 2 * limits::kMaxStuckRequests);
}

TEST_F(StuckUnit, HasNoLimitOnceOneRequestCompletesBeforeTheNextPoll) {
  read(limits::kMaxStuckRequests);
  become_stuck();
  EXPECT_EQ(status_of(read16(next_block, 1)), Status::kBusy);
  backend->release_one();
  ASSERT_TRUE(unit->stuck()) << "as of the last poll";
  const uint64_t held = backend->held.size();
  read(2);
  EXPECT_EQ(backend->held.size(), held + 2);
  EXPECT_FALSE(tasks.back()->done());
}

// They were aborted, but the backend still has their memory.
TEST_F(StuckUnit, CountsDetachedCommands) {
  read(limits::kMaxStuckRequests);
  become_stuck();
  for (const auto& nexus : {a, b}) nexus->abort_task_set(0, [&] { ++finished; });
  now += limits::kAbortBound;
  for (const auto& nexus : {a, b}) nexus->tick();
  reactors.run();
  EXPECT_EQ(finished, 2);
  EXPECT_EQ(status_of(read16(next_block, 1)), Status::kBusy);
}

}  // namespace
}  // namespace sluice::lun
