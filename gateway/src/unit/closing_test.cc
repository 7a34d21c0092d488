// How a gateway releases a unit: planned or fenced (DESIGN R2, R4, R5, R7).
#include <gtest/gtest.h>

#include <thread>

#include "commands/copies/third_party.h"
#include "commands/copies/tokens.h"
#include "nexus/cluster_fixture.h"
#include "unit/ranges/range_table.h"

namespace sluice::lun {
namespace {

class ClosingTest : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    serve_here(1);
    nexus = open("a");
    other = open("b", 1);
    watch_drops(*nexus);
    watch_drops(*other);
  }
  std::shared_ptr<Nexus> nexus;
  std::shared_ptr<Nexus> other;
};

TEST_F(ClosingTest, AReleaseWaitsForCommandsOnEveryReactorThenFlushesThenCloses) {
  backend->holds = true;
  Task& one = start(*nexus, write16(0, 8), Bytes(4096, 1));
  Task& two = start(*other, write16(8, 8), Bytes(4096, 2));
  const auto released = release_unit();
  reactors.run();
  EXPECT_EQ(fate->flushes, 0u);
  backend->release_one();
  reactors.run();
  EXPECT_EQ(fate->flushes, 0u);
  backend->release_one();
  EXPECT_TRUE(one.done() && two.done());
  EXPECT_EQ(one.command.status, scsi::Status::kGood);
  reactors.run();
  EXPECT_EQ(fate->flushes, 1u);
  EXPECT_EQ(fate->closed, 0u);
  EXPECT_EQ(*released, -1);
  backend->release_one();
  reactors.run();
  EXPECT_EQ(*released, 1);
  EXPECT_EQ(fate->closed, 1u);
  EXPECT_EQ(fate->destroyed, 1u);
  EXPECT_EQ(unit->role(), (Role{Standing::kTransitioning, 1, kSelf}));
  EXPECT_EQ(drops, 0u);
}

TEST_F(ClosingTest, AReleaseAlsoWaitsForCommandsThatHoldNoBlocks) {
  backend->holds = true;
  Task& synchronize = start(*other, {0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const auto released = release_unit();
  reactors.run();
  EXPECT_EQ(fate->flushes, 1u) << "the host's own";
  backend->release_one();
  EXPECT_EQ(synchronize.command.status, scsi::Status::kGood);
  reactors.run();
  EXPECT_EQ(fate->flushes, 2u);
  EXPECT_EQ(*released, -1);
  backend->release_one();
  reactors.run();
  EXPECT_EQ(*released, 1);
}

TEST_F(ClosingTest, AReleaseHoldsNewCommandsAndCompletesCommandsWaitingForARange) {
  backend->holds = true;
  Task& running = start(*nexus, write16(0, 8), Bytes(4096, 1));
  Task& waiting = start(*nexus, write16(0, 8), Bytes(4096, 2));
  const auto released = release_unit();
  Task& later = start(*nexus, write16(0, 8), Bytes(4096, 3));
  backend->release_one();
  backend->release_one();
  EXPECT_TRUE(running.done() && waiting.done());
  EXPECT_EQ(waiting.command.status, scsi::Status::kGood);
  reactors.run();
  backend->release_all();  // the flush
  reactors.run();
  EXPECT_EQ(*released, 1);
  EXPECT_EQ(later.completions, 0);
  serve_here(2);
  EXPECT_TRUE(later.done());
  EXPECT_EQ(backend->submitted.size(), 1u);
}

TEST_F(ClosingTest, ConcurrentReleasesBothCompleteAndOneWithoutABackendSucceeds) {
  const auto one = release_unit();
  const auto two = release_unit();
  EXPECT_EQ(*one, -1) << "never inside the call";
  reactors.run();
  EXPECT_EQ(*one, 1);
  EXPECT_EQ(*two, 1);
  const auto three = release_unit();
  reactors.run();
  EXPECT_EQ(*three, 1);
  EXPECT_EQ(fate->closed, 1u);
}

TEST_F(ClosingTest, AFailedFlushDropsTheNexuses) {
  Task& write = start(*nexus, write16(0, 8), Bytes(4096, 1));
  EXPECT_TRUE(write.done());
  backend->fail_with = -EIO;
  const auto released = release_unit();
  reactors.run();
  EXPECT_EQ(*released, 0);
  EXPECT_EQ(drops, 2u);
  EXPECT_EQ(fate->closed, 1u);
}

TEST_F(ClosingTest, AFenceDropsEveryNexusAbortsItsCommandsAndWaitsForTheBackend) {
  backend->holds = true;
  Task& running = start(*nexus, write16(0, 8), Bytes(4096, 1));
  Task& waiting = start(*other, write16(0, 8), Bytes(4096, 2));
  Task& data = make(write16(8, 8), Bytes(4096, 3));
  ASSERT_TRUE(begin(*nexus, data));
  const auto fenced = fence_unit();
  reactors.run();
  EXPECT_EQ(drops, 2u);
  EXPECT_TRUE(waiting.done() && waiting.command.abort == Abort::kSilent);
  EXPECT_TRUE(data.done() && data.command.aborted());
  EXPECT_EQ(running.completions, 0);
  EXPECT_EQ(*fenced, -1) << "DESIGN R5";
  backend->release_all();
  reactors.run();
  EXPECT_TRUE(running.done() && running.command.aborted());
  EXPECT_EQ(*fenced, 1);
  EXPECT_EQ(fate->closed, 1u);
  EXPECT_EQ(fate->flushes, 0u) << "nothing more may reach the medium";
  follow_to(2, 2);
  EXPECT_EQ(unit->role().owner, 2);
}

TEST_F(ClosingTest, AFenceSupersedesARelease) {
  backend->holds = true;
  Task& running = start(*nexus, write16(0, 8), Bytes(4096, 1));
  Task& waiting = start(*nexus, write16(0, 8), Bytes(4096, 2));
  const auto released = release_unit();
  reactors.run();
  const auto fenced = fence_unit();
  reactors.run();
  EXPECT_EQ(drops, 2u);
  EXPECT_TRUE(waiting.command.aborted());
  backend->release_all();
  reactors.run();
  EXPECT_TRUE(running.command.aborted());
  EXPECT_EQ(*released, 0);
  EXPECT_EQ(*fenced, 1);
  EXPECT_EQ(fate->flushes, 0u);
}

TEST_F(ClosingTest, ARangeGrantedBetweenAFenceAndItsDropsIsNotUsed) {
  backend->holds = true;
  start(*nexus, write16(0, 8), Bytes(4096, 1));
  Task& waiting = start(*nexus, write16(0, 8), Bytes(4096, 2));
  const auto fenced = fence_unit();
  backend->release_one();  // before what the fence posted
  EXPECT_TRUE(waiting.done() && waiting.command.aborted());
  EXPECT_EQ(backend->submitted.size(), 1u);
  reactors.run();
  EXPECT_EQ(*fenced, 1);
}

TEST_F(ClosingTest, AForwardedCommandGrantedARangeDuringAFenceEndsAsNotOwner) {
  backend->holds = true;
  start(*nexus, write16(0, 8), Bytes(4096, 1));
  Task& waiting = start(*nexus, write16(0, 8), Bytes(4096, 2));
  waiting.command.epoch = unit->epoch();
  const auto fenced = fence_unit();
  backend->release_one();  // before what the fence posted
  EXPECT_TRUE(waiting.done() && waiting.command.outcome == Outcome::kNotOwner &&
              !waiting.command.aborted());
  EXPECT_EQ(backend->submitted.size(), 1u);
  reactors.run();
  EXPECT_EQ(*fenced, 1);
}

TEST_F(ClosingTest, LentMemoryRemainsValidAfterTheBackendIsClosed) {
  backend->lends = true;
  backend->fill(0, 4096, 7);
  Task& read = start(*nexus, read16(0, 8));
  const auto released = release_unit();
  reactors.run();
  EXPECT_EQ(*released, 1);
  EXPECT_EQ(fate->closed, 1u);
  EXPECT_EQ(fate->destroyed, 0u);
  EXPECT_EQ(read.answer(), Bytes(4096, 7));
  const auto first = fate;
  serve_here(2);
  forget_attentions(*nexus);
  backend->lends = true;
  backend->fill(0, 4096, 8);
  EXPECT_EQ(start(*nexus, read16(0, 8)).answer(), Bytes(4096, 8));
  EXPECT_EQ(read.answer(), Bytes(4096, 7));
  read.command.data_in.clear();
  EXPECT_EQ(first->destroyed, 1u);
}

TEST_F(ClosingTest, AReleaseCompletesOnlyWhenTheBackendHasClosed) {
  fate->closes_late = true;
  const auto one = release_unit();
  reactors.run();
  EXPECT_EQ(fate->closed, 1u);
  EXPECT_EQ(fate->destroyed, 1u) << "it may go before that";
  const auto two = release_unit();
  reactors.run();
  EXPECT_EQ(*one, -1);
  EXPECT_EQ(*two, -1);
  std::thread(fate->closing.front()).join();
  EXPECT_EQ(*one, -1) << "on a reactor";
  reactors.run();
  EXPECT_EQ(*one, 1);
  EXPECT_EQ(*two, 1);
  EXPECT_EQ(fate->closed, 1u);
  EXPECT_EQ(drops, 0u);
}

TEST_F(ClosingTest, AFenceCompletesOnlyWhenTheBackendHasClosed) {
  fate->closes_late = true;
  const auto fenced = fence_unit();
  reactors.run();
  EXPECT_EQ(fate->closed, 1u);
  EXPECT_EQ(*fenced, -1);
  fate->closing.front()();
  reactors.run();
  EXPECT_EQ(*fenced, 1);
}

TEST_F(ClosingTest, AFenceDuringTheCloseOfAReleaseDropsImmediatelyAndAwaitsThatClose) {
  fate->closes_late = true;
  const auto released = release_unit();
  reactors.run();
  Task& held = start(*nexus, write16(0, 8), Bytes(4096, 1));
  const auto fenced = fence_unit();
  reactors.run();
  EXPECT_EQ(drops, 2u);
  EXPECT_TRUE(held.done() && held.command.aborted());
  EXPECT_EQ(*released, -1);
  EXPECT_EQ(*fenced, -1);
  fate->closing.front()();
  reactors.run();
  EXPECT_EQ(*released, 0);
  EXPECT_EQ(*fenced, 1);
  EXPECT_EQ(fate->closed, 1u);
}

TEST_F(ClosingTest, WhileABackendClosesRoleChangesAreRefusedAndCommandsAreHeld) {
  fate->closes_late = true;
  const auto first = fate;
  release_unit();
  reactors.run();
  Task& held = start(*nexus, write16(0, 8), Bytes(4096, 1));
  follow_to(2, 2);
  EXPECT_EQ(unit->role(), (Role{Standing::kTransitioning, 1, kSelf}));
  serve_here(2);
  EXPECT_EQ(fate->destroyed, 1u) << "refused";
  EXPECT_FALSE(unit->opened());
  EXPECT_EQ(held.completions, 0);
  first->closing.front()();
  reactors.run();
  serve_here(2);
  EXPECT_EQ(held.command.status, scsi::Status::kGood);
}

// Of a copy that a nexus sent to another unit this one's task sets know nothing.
TEST_F(ClosingTest, ARangeHeldByACopyDelaysARelease) {
  RangeHold hold;
  hold.first = 5;
  hold.last = 9;
  ASSERT_TRUE(unit->ranges().acquire(0, hold, &reactors));
  const auto released = release_unit();
  reactors.run();
  EXPECT_EQ(*released, -1);
  EXPECT_EQ(fate->flushes, 0u);
  unit->ranges().release(0, hold, &reactors);
  reactors.run();
  EXPECT_EQ(*released, 1);
}

TEST_F(ClosingTest, ACopyIsRefusedForAUnitThatThisGatewayDoesNotOwn) {
  const auto refusal = [&] {
    const auto refused = copy_refusal(*unit, nexus->id(), true);
    return refused ? refused->sense.asc << 8 | refused->sense.ascq : 0;
  };
  EXPECT_EQ(refusal(), 0);
  release_unit();
  EXPECT_EQ(refusal(), 0) << "one that runs goes on while the unit drains";
  reactors.run();
  EXPECT_EQ(refusal(), 0x040a);
  follow_to(2, 2);
  EXPECT_EQ(refusal(), 0x040c);
}

TEST_F(ClosingTest, AReleaseRevokesTheTokensOfTheUnit) {
  const std::vector<scsi::BlockExtent> blocks{{8, 8}};
  auto source = std::make_shared<RodSource>(unit, blocks, kSecond, now);
  unit->changes().add(source);
  release_unit();
  reactors.run();
  EXPECT_TRUE(source->revoked());
  EXPECT_FALSE(unit->changes().armed());
}

TEST_F(ClosingTest, AUnitCanBeReleasedOrFencedAndServedAgainRepeatedly) {
  for (uint64_t epoch = 2; epoch < 20; ++epoch) {
    const auto done = epoch % 3 == 0 ? fence_unit() : release_unit();
    reactors.run();
    EXPECT_EQ(*done, 1);
    EXPECT_EQ(fate->closed, 1u);
    EXPECT_EQ(fate->destroyed, 1u);
    serve_here(epoch);
    forget_attentions(*nexus);
    EXPECT_EQ(start(*nexus, write16(0, 8), Bytes(4096, 1)).command.status, scsi::Status::kGood);
  }
}

TEST_F(ClosingTest, AnotherRoleOrBackendIsRefusedWhileTheUnitIsServed) {
  follow_to(2, 2);
  EXPECT_EQ(unit->role(), (Role{Standing::kOwner, 1, kSelf}));
  const auto second = std::make_shared<Fate>();
  serve(*unit, reactors, std::make_unique<OwnedBackend>(kBlocks * block, second), nullptr, {}, 2,
        kSelf);
  EXPECT_EQ(second->destroyed, 1u);
  EXPECT_EQ(unit->role().epoch, 1u);
  EXPECT_EQ(fate->destroyed, 0u);
}

}  // namespace
}  // namespace sluice::lun
