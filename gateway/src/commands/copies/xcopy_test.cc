// EXTENDED COPY and RECEIVE COPY RESULTS as a host sees them.
#include <gtest/gtest.h>

#include "commands/copies/xcopy_fixture.h"
#include "unit/closing.h"
#include "unit/ownership.h"
#include "unit/reservations/reservations.h"

namespace sluice::lun {
namespace {

using scsi::Status;

TEST_F(XcopyTest, CopiesWithinALun) {
  const Bytes before = backend->data;
  EXPECT_EQ(copy({{0, 0, 2048, 0, 8192}}), 0u);
  EXPECT_TRUE(same(*backend, 8192 * 512, before, 0, 2048 * 512));
  EXPECT_TRUE(same(*backend, 0, before, 0, 8192 * 512));
}

TEST_F(XcopyTest, CopiesAcrossLunsInManyChunksAndSegments) {
  const Bytes before = backend->data;
  EXPECT_EQ(copy({{0, 1, 9001, 17, 3}, {0, 1, 5, 0, 16000}}), 0u);
  EXPECT_TRUE(same(*other_backend, 3 * 512, before, 17 * 512, 9001 * 512));
  EXPECT_TRUE(same(*other_backend, 16000 * 512, before, 0, 5 * 512));
}

TEST_F(XcopyTest, ALaterSegmentReadsTheDataThatAnEarlierSegmentWrote) {
  const Bytes before = backend->data;
  EXPECT_EQ(copy({{0, 1, 3000, 0, 0}, {1, 0, 3000, 0, 10000}}), 0u);
  EXPECT_TRUE(same(*backend, 10000 * 512, before, 0, 3000 * 512));
}

TEST_F(XcopyTest, OverlappingRangesAreCopiedAsIfTheSourceWereReadFirst) {
  for (const auto& [from, to] : {std::pair{100, 103}, std::pair{103, 100}, std::pair{50, 50}}) {
    const Bytes before = backend->data;
    EXPECT_EQ(copy({{0, 0, 12000, static_cast<uint64_t>(from), static_cast<uint64_t>(to)}}), 0u);
    EXPECT_TRUE(same(*backend, static_cast<uint64_t>(to) * 512, before,
                     static_cast<uint64_t>(from) * 512, 12000 * 512))
        << from << " to " << to;
  }
}

TEST_F(XcopyTest, ShortTransfersOfTheBackendAreContinued) {
  backend->most_per_io = 3 * 512;
  other_backend->most_per_io = 300 * 512;
  const Bytes before = backend->data;
  EXPECT_EQ(copy({{0, 1, 4000, 1, 2}}), 0u);
  EXPECT_TRUE(same(*other_backend, 2 * 512, before, 512, 4000 * 512));
}

TEST_F(XcopyTest, ACopyOfNoBlocksReturnsGood) {
  EXPECT_EQ(run(begin_copy(*a, {})).command.status, Status::kGood);
  EXPECT_EQ(copy({}), 0u);
  EXPECT_EQ(copy({{0, 1, 0, 0, 0}}), 0u);
  EXPECT_TRUE(other_backend->submitted.empty());
}

TEST_F(XcopyTest, ListsWithAWrongLengthAreRefused) {
  const Bytes good = both({{0, 1, 8, 0, 0}});
  for (const size_t size : {size_t{8}, size_t{16 + 31}, good.size() - 1}) {
    EXPECT_EQ(run(begin_copy(*a, Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(size))))
                  .sense(),
              0x051a00u)
        << size;
  }
}

TEST_F(XcopyTest, TooManyOrUnknownDescriptorsAreRefused) {
  const std::vector<Bytes> cscds(limits::kMaxCopyTargets + 1, cscd(*unit));
  EXPECT_EQ(run(begin_copy(*a, list(cscds, {{0, 0, 1, 0, 9}}))).sense(), 0x052606u);
  const std::vector<Segment> segments(limits::kMaxCopySegments + 1, {0, 0, 1, 0, 9});
  EXPECT_EQ(run(begin_copy(*a, list({cscd(*unit)}, segments))).sense(), 0x052608u);
  Bytes bad = both({{0, 1, 8, 0, 0}});
  bad[16] = 0xe0;
  EXPECT_EQ(run(begin_copy(*a, bad)).sense(), 0x052607u);
  bad = both({{0, 1, 8, 0, 0}});
  bad[16 + 64] = 0x03;
  EXPECT_EQ(run(begin_copy(*a, bad)).sense(), 0x052609u);
}

TEST_F(XcopyTest, ALunThatIsReadOnlyInItsTargetIsNoDestination) {
  target->set_luns({{0, unit}, {1, other, true}}, reactors);
  a = open("reader");
  const Bytes before = other_backend->data;
  EXPECT_NE(copy({{0, 1, 8, 0, 0}}), 0u);
  EXPECT_EQ(other_backend->data, before);
  EXPECT_EQ(copy({{1, 0, 8, 0, 0}}, 2), 0u) << "but a source";
}

TEST_F(XcopyTest, AnUnreachableTargetOrRangeAbortsTheCopyAtItsSegment) {
  EXPECT_EQ(copy({{0, 2, 8, 0, 0}}), 0x0a0804u) << "no such CSCD";
  Bytes stranger = cscd(*unit);
  stranger[9] ^= 0x55;
  EXPECT_EQ(run(begin_copy(*a, list({cscd(*unit), stranger}, {{0, 1, 8, 0, 0}}))).sense(),
            0x0a0804u);
  EXPECT_EQ(copy({{0, 1, 8, 0, 0}, {0, 1, 2048, 0, kBytes / 512 - 1}}), 0x0a0000u)
      << "past the end";
  const Bytes status = results(*a, 0).answer();
  EXPECT_EQ(status[4], 2) << "completed with errors";
  EXPECT_EQ(load_be16(&status[5]), 1) << "one segment was fine";
}

TEST_F(XcopyTest, AWrongBlockLengthOrDeviceTypeIsRefused) {
  Bytes wrong = cscd(*other);
  put_be(wrong, 29, 3, 4096);
  EXPECT_EQ(run(begin_copy(*a, list({cscd(*unit), wrong}, {{0, 1, 8, 0, 0}}))).sense(), 0x0a2600u);
  wrong = cscd(*other);
  wrong[1] = 0x01;
  EXPECT_EQ(run(begin_copy(*a, list({cscd(*unit), wrong}, {{0, 1, 8, 0, 0}}))).sense(), 0x0a0d03u);
}

TEST_F(XcopyTest, ACopyAboveTheSizeLimitIsRefusedBeforeAnyBlockIsCopied) {
  const std::vector<Segment> segments(40, {0, 1, 65535, 0, 0});
  EXPECT_EQ(copy(segments), 0x052600u);
  EXPECT_TRUE(backend->submitted.empty());
}

TEST_F(XcopyTest, ACopyObeysReservationsAndWriteProtectionOfBothUnits) {
  for (const bool write_side : {true, false}) {
    Unit& reserved = write_side ? *other : *unit;
    ReservationState state;
    state.type = write_side ? ReservationType::kWriteExclusive : ReservationType::kExclusiveAccess;
    state.holder = b->id();
    state.registrations = {{b->id(), 1, false, {}}};
    {
      const std::lock_guard lock(reserved.mutex());
      reserved.reservations().replace(state);
      reserved.reservations_changed();
    }
    // Sent to the unit that isn't reserved.
    Bytes data = both({{0, 1, 8, 0, 0}});
    EXPECT_EQ(run(begin_copy(*a, data, write_side ? 0 : 1)).sense(), 0x0a0d01u);
    EXPECT_EQ(run(begin_copy(*b, data, write_side ? 0 : 1)).sense(), 0u);
    const std::lock_guard lock(reserved.mutex());
    reserved.reservations().replace({});
    reserved.reservations_changed();
  }
  other->set_mode({.descriptor_sense = false, .software_write_protect = true});
  EXPECT_EQ(copy({{0, 1, 8, 0, 0}}), 0x0a0d01u);
  EXPECT_EQ(run(begin_copy(*a, both({{1, 0, 8, 0, 0}}))).sense(), 0u) << "reading is allowed";
}

TEST_F(XcopyTest, AMediumErrorAbortsTheCopyWithItsCause) {
  backend->fail_with = -EIO;
  Task& failed = run(begin_copy(*a, both({{0, 1, 8, 0, 0}})));
  EXPECT_EQ(failed.sense(), 0x0a0d01u);
  ASSERT_EQ(failed.command.sense_size, 37u);
  EXPECT_EQ(failed.command.sense[8], 18) << "the source";
  EXPECT_EQ(failed.command.sense[18], 0x02);
  EXPECT_EQ(failed.command.sense[19 + 2], 0x03);
  EXPECT_EQ(failed.command.sense[19 + 12], 0x11);
  const Bytes details = results(*a, 4).answer();
  ASSERT_GT(details.size(), 73u);
  EXPECT_EQ(details[56], 0x02) << "CHECK CONDITION, of the failing unit";
  EXPECT_EQ(details[60 + 2], 0x03);
  EXPECT_EQ(details[60 + 12], 0x11) << "read error";
  Task& unwritten = run(begin_copy(*a, both({{1, 0, 8, 0, 0}})));
  EXPECT_EQ(unwritten.sense(), 0x0a0d01u);
  EXPECT_EQ(unwritten.command.sense[9], 18) << "the destination";
  EXPECT_EQ(unwritten.command.sense[19 + 12], 0x0c);
  EXPECT_EQ(results(*a, 4).answer()[60 + 12], 0x0c) << "write error";
}

TEST_F(XcopyTest, ACopyWithoutMemoryReturnsBusy) {
  std::vector<BufferRef> taken;
  while (BufferRef buffer = pool.allocate(4096)) taken.push_back(std::move(buffer));
  EXPECT_EQ(run(begin_copy(*a, both({{0, 1, 8, 0, 0}}))).command.status, Status::kBusy);
  taken.resize(taken.size() - 3);  // 12 KiB are enough to get along
  EXPECT_EQ(copy({{0, 1, 1000, 0, 0}}), 0u);
  EXPECT_TRUE(same(*other_backend, 0, backend->data, 0, 1000 * 512));
}

TEST_F(XcopyTest, ACopyReleasesItsMemory) {
  const size_t before = pool.in_use();
  copy({{0, 1, 8000, 0, 0}});
  copy({{0, 2, 8, 0, 0}});
  EXPECT_EQ(pool.in_use(), before);
}

// --- order with other commands

TEST_F(XcopyTest, AWriteToTheDestinationWaitsForTheChunkThatIsBeingWritten) {
  other_backend->holds = true;
  Task& copying = begin_copy(*a, both({{0, 1, 2048, 0, 0}}));
  reactors.run();
  ASSERT_EQ(other_backend->held.size(), 1u);
  Task& write = start(*b, write16(5, 1), Bytes(512, 0xee), uint64_t{1} << 48);
  reactors.run();
  EXPECT_EQ(other_backend->held.size(), 1u);
  EXPECT_FALSE(write.done());
  other_backend->holds = false;
  other_backend->release_all();
  EXPECT_EQ(run(copying).sense(), 0u);
  EXPECT_TRUE(write.done());
  EXPECT_TRUE(other_backend->all(5 * 512, 512, 0xee));
}

TEST_F(XcopyTest, AtMostTwoChunksAreInFlight) {
  backend->holds = true;
  Task& copying = begin_copy(*a, both({{0, 1, 16000, 0, 0}}));
  reactors.run();
  EXPECT_EQ(backend->held.size(), limits::kCopyChunksInFlight);
  backend->holds = false;
  backend->release_all();
  EXPECT_EQ(run(copying).sense(), 0u);
  EXPECT_TRUE(same(*other_backend, 0, backend->data, 0, 16000 * 512));
}

TEST_F(XcopyTest, CopiesInOppositeDirectionsBothComplete) {
  backend->holds = other_backend->holds = true;
  Task& there = begin_copy(*a, both({{0, 1, 16000, 0, 0}}));
  Task& back = begin_copy(*b, both({{1, 0, 16000, 0, 0}}));
  reactors.run();
  for (int i = 0; i < 200 && !(there.done() && back.done()); ++i) {
    if (!backend->held.empty()) backend->release_one();
    if (!other_backend->held.empty()) other_backend->release_one();
    reactors.run();
  }
  EXPECT_EQ(there.command.status, Status::kGood);
  EXPECT_EQ(back.command.status, Status::kGood);
}

TEST_F(XcopyTest, AnAbortStopsACopyAfterTheBackendCompletesTheCurrentChunks) {
  backend->holds = true;
  Task& copying = begin_copy(*a, both({{0, 1, 16000, 0, 0}}));
  reactors.run();
  a->abort(copying.command);
  reactors.run();
  EXPECT_FALSE(copying.done()) << "the backend still reads into its buffers";
  const size_t submitted = backend->submitted.size();
  backend->release_all();
  run(copying);
  EXPECT_TRUE(copying.command.aborted());
  EXPECT_EQ(backend->submitted.size(), submitted);
  EXPECT_TRUE(other_backend->submitted.empty());
}

TEST_F(XcopyTest, PreemptAndAbortAtTheDestinationStopsACopySentToAnotherLun) {
  for (Nexus* nexus : {a.get(), b.get()}) {
    Bytes data(24);
    data[15] = nexus == a.get() ? 0xa : 0xb;
    start(*nexus, {0x5f, 6, 0, 0, 0, 0, 0, 0, 24, 0}, data, uint64_t{1} << 48);
  }
  Bytes reserve(24);
  reserve[7] = 0xa;
  start(*a, {0x5f, 1, 5, 0, 0, 0, 0, 0, 24, 0}, reserve, uint64_t{1} << 48);
  reactors.run();
  other_backend->holds = true;
  Task& copying = begin_copy(*a, both({{0, 1, 16000, 0, 0}}));
  reactors.run();
  ASSERT_FALSE(other_backend->held.empty());
  Bytes preempt(24);
  preempt[7] = 0xb;
  preempt[15] = 0xa;
  Task& fence = start(*b, {0x5f, 5, 5, 0, 0, 0, 0, 0, 24, 0}, preempt, uint64_t{1} << 48);
  reactors.run();
  EXPECT_FALSE(fence.done());
  other_backend->holds = false;
  other_backend->release_all();
  reactors.run();
  EXPECT_EQ(fence.command.status, Status::kGood);
  EXPECT_EQ(run(copying).sense(), 0x0a0d01u);
  EXPECT_LE(other_backend->submitted.size(), size_t{limits::kCopyChunksInFlight});
}

// --- results

TEST_F(XcopyTest, StatusIsAvailableDuringAndAfterTheCopyOnlyToItsNexus) {
  EXPECT_EQ(results(*a, 0).sense(), 0x052400u) << "no copy yet";
  backend->holds = true;
  Task& copying = begin_copy(*a, both({{0, 1, 100, 0, 0}}));
  reactors.run();
  EXPECT_EQ(results(*a, 0).answer()[4], 0) << "in progress";
  EXPECT_EQ(run(begin_copy(*a, both({{0, 1, 1, 0, 0}}))).sense(), 0x050016u) << "id in use";
  backend->holds = false;
  backend->release_all();
  run(copying);
  const Bytes status = results(*a, 0).answer();
  ASSERT_EQ(status.size(), 12u);
  EXPECT_EQ(status[4], 1);
  EXPECT_EQ(load_be16(&status[5]), 1);
  EXPECT_EQ(load_be32(&status[8]), 100u * 512);
  EXPECT_EQ(results(*b, 0).sense(), 0x052400u);
  EXPECT_EQ(results(*a, 0, 2).sense(), 0x052400u);
}

TEST_F(XcopyTest, ACopyWithoutAListIdRetainsNoResults) {
  EXPECT_EQ(run(begin_copy(*a, both({{0, 1, 1, 0, 0}}, 0, 3))).sense(), 0u);
  EXPECT_EQ(results(*a, 0, 0).sense(), 0x052400u);
  EXPECT_EQ(run(begin_copy(*a, both({{0, 1, 1, 0, 0}}, 7, 3))).sense(), 0x052600u);
}

TEST_F(XcopyTest, TheNumberOfRetainedResultsIsBounded) {
  for (unsigned id = 0; id < limits::kMaxCopyRecords + 1; ++id) {
    EXPECT_EQ(copy({{0, 1, 1, 0, 0}}, static_cast<uint8_t>(id)), 0u);
  }
  EXPECT_EQ(results(*a, 0, 0).sense(), 0x052400u) << "the oldest went";
  EXPECT_EQ(results(*a, 0, 1).sense(), 0u);
}

TEST_F(XcopyTest, OperatingParametersReportTheEnforcedLimits) {
  const Bytes data = results(*a, 3, 0).answer();
  ASSERT_GT(data.size(), 44u);
  EXPECT_EQ(load_be16(&data[8]), limits::kMaxCopyTargets);
  EXPECT_EQ(load_be16(&data[10]), limits::kMaxCopySegments);
}

// --- different block sizes

class MixedXcopyTest : public XcopyTest {
 protected:
  MixedXcopyTest() : XcopyTest(4096) {}
};

TEST_F(MixedXcopyTest, WholeBlocksAreCopiedInBothDirections) {
  const Bytes before = backend->data;
  EXPECT_EQ(copy({{0, 1, 8000, 8, 2}}), 0u);
  EXPECT_TRUE(same(*other_backend, 2 * 4096, before, 8 * 512, 8000 * 512));
  EXPECT_EQ(copy({{1, 0, 16, 2, 400, 2}}), 0u) << "DC counts destination blocks";
  EXPECT_TRUE(same(*backend, 400 * 512, other_backend->data, 2 * 4096, 16 * 512));
}

TEST_F(MixedXcopyTest, APartialBlockIsPaddedIfPermittedAndRefusedOtherwise) {
  EXPECT_EQ(copy({{0, 1, 9, 0, 0}}), 0x0a260au) << "UNEXPECTED INEXACT SEGMENT";
  EXPECT_EQ(copy({{0, 1, 9, 0, 0, 1}}), 0x0a2600u) << "CAT";
  const Bytes source = backend->data;
  const Bytes padded = list({cscd(*unit), cscd(*other, true)}, {{0, 1, 9, 0, 5}});
  EXPECT_EQ(run(begin_copy(*a, padded)).sense(), 0u);
  EXPECT_TRUE(same(*other_backend, 5 * 4096, source, 0, 9 * 512));
  EXPECT_TRUE(other_backend->all(5 * 4096 + 9 * 512, 2 * 4096 - 9 * 512, 0));
  const Bytes cut = list({cscd(*unit), cscd(*other, true)}, {{1, 0, 9, 100, 1000, 2}});
  const Bytes before = backend->data;
  EXPECT_EQ(run(begin_copy(*a, cut)).sense(), 0u);
  EXPECT_TRUE(same(*backend, 1000 * 512, other_backend->data, 100 * 4096, 9 * 512));
  EXPECT_TRUE(same(*backend, 1009 * 512, before, 1009 * 512, 512));
}

class FencedCopyTest : public XcopyTest {
 protected:
  std::shared_ptr<backend::Backend> kept;  // until the test looks at it no more
};

// Its nexus has no command of its own at the other unit: still a fence of that must find it.
TEST_F(FencedCopyTest, AFenceDropsTheNexusOfACopyFromOrToTheUnit) {
  kept = other->shared_backend();
  const Segment write{0, 1, 8, 0, 0};
  const Segment read{1, 0, 8, 0, 0};
  other_backend->holds = true;
  std::vector<Task*> copies;
  int dropped = 0;
  for (const Segment& segment : {read, write}) {
    auto fresh = open_fresh("fresh" + std::to_string(copies.size()));
    start(*fresh, test_unit_ready());
    ASSERT_EQ(fresh->itls().size(), 1u);
    fresh->drop = [&](const std::string&) { ++dropped; };
    copies.push_back(&begin_copy(*fresh, both({segment})));
    reactors.run();
    ASSERT_EQ(copies.back()->completions, 0);
  }
  fence(*other, reactors, [] {});
  reactors.run();
  EXPECT_EQ(dropped, 2) << "DESIGN R4, R5";
  other_backend->release_all();
  for (Task* copy : copies) run(*copy);
}

}  // namespace
}  // namespace sluice::lun
