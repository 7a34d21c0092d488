// WRITE SAME, UNMAP, GET LBA STATUS, SYNCHRONIZE CACHE, PRE-FETCH, START STOP UNIT.
#include <gtest/gtest.h>

#include "base/limits.h"
#include "nexus/lun_fixture.h"
#include "unit/bandwidth.h"

namespace sluice::lun {
namespace {

using backend::Op;
using scsi::Status;

class SpaceTest : public LunTest {
 protected:
  void SetUp() override {
    LunTest::SetUp();
    nexus = open("a");
    backend->fill(0, backend->data.size(), 0xee);
  }
  static Bytes write_same(uint64_t lba, uint32_t blocks, uint8_t flags = 0) {
    return cdb16(0x93, lba, blocks, flags);
  }
  struct Extent {
    uint64_t lba;
    uint32_t blocks;
  };
  static Bytes unmap_list(const std::vector<Extent>& extents) {
    Bytes list(8 + 16 * extents.size());
    put_be(list, 0, 2, list.size() - 2);
    put_be(list, 2, 2, 16 * extents.size());
    for (size_t i = 0; i < extents.size(); ++i) {
      put_be(list, 8 + 16 * i, 8, extents[i].lba);
      put_be(list, 16 + 16 * i, 4, extents[i].blocks);
    }
    return list;
  }
  Task& unmap(const std::vector<Extent>& extents) {
    Bytes list = unmap_list(extents);
    Bytes cdb(10);
    cdb[0] = 0x42;
    put_be(cdb, 7, 2, list.size());
    return start(*nexus, cdb, std::move(list));
  }

  std::shared_ptr<Nexus> nexus;
};

TEST_F(SpaceTest, WriteSameOfZerosIsOneBackendRequest) {
  EXPECT_EQ(start(*nexus, write_same(8, 1000), Bytes(512)).command.status, Status::kGood);
  ASSERT_EQ(backend->submitted.size(), 1u);
  EXPECT_EQ(backend->submitted[0].op, Op::kWriteZeroes);
  EXPECT_EQ(backend->submitted[0].flags, 0);
  EXPECT_TRUE(backend->all(8 * 512, 1000 * 512, 0));
}

TEST_F(SpaceTest, WriteSameOfZerosWithUnmapMayDeallocate) {
  EXPECT_EQ(start(*nexus, write_same(8, 8, 0x08), Bytes(512)).command.status, Status::kGood);
  EXPECT_EQ(backend->submitted[0].op, Op::kWriteZeroes);
  EXPECT_EQ(backend->submitted[0].flags, backend::kIoMayUnmap);
}

TEST_F(SpaceTest, WriteSameWritesAPatternWithOrWithoutUnmap) {
  for (const uint8_t flags : {0x00, 0x08}) {
    backend->fill(0, backend->data.size(), 0xee);
    Bytes pattern(512, 0x21);
    pattern[511] = 0x22;
    EXPECT_EQ(start(*nexus, write_same(1, 1200, flags), pattern).command.status, Status::kGood);
    for (uint64_t b = 1; b <= 1200; ++b) {
      ASSERT_EQ(backend->data[b * 512], 0x21);
      ASSERT_EQ(backend->data[b * 512 + 511], 0x22);
    }
    EXPECT_TRUE(backend->all(0, 512, 0xee));
    EXPECT_TRUE(backend->all(1201 * 512, 512, 0xee));
  }
}

// A unit with more blocks than one piece of WRITE SAME or UNMAP.
class PiecesTest : public SpaceTest {
 protected:
  static constexpr uint64_t kPiece = limits::kMaxHeldBytes / 512;  // blocks
  static constexpr uint64_t kLarge = 3 * kPiece;
  void SetUp() override {
    SpaceTest::SetUp();
    backend->data.resize(kLarge * 512, 0xee);
    ASSERT_TRUE(unit->resize(kLarge * 512).ok());
    start(*nexus, test_unit_ready());  // CAPACITY DATA HAS CHANGED
    other = open("b");
    backend->submitted.clear();
    backend->holds = true;
  }
  void complete_one() {
    backend->release_one();
    reactors.run();
  }
  // A read of one block that began while a command changes blocks.
  Task& read(uint64_t lba) { return start(*other, read16(lba, 1)); }
  void expect_pieces(Task& changing, Op op) {
    ASSERT_EQ(backend->held.size(), 1u);
    EXPECT_EQ(backend->submitted.back().op, op);
    Task& first = read(10);
    Task& last = read(2 * kPiece);
    EXPECT_EQ(backend->held.size(), 2u) << "only the block of the first piece is in use";
    backend->holds = false;
    complete_one();
    EXPECT_TRUE(first.done()) << "it waits for one piece";
    backend->release_all();
    reactors.run();
    EXPECT_TRUE(last.done());
    EXPECT_TRUE(changing.done());
    EXPECT_EQ(changing.command.status, Status::kGood);
  }

  std::shared_ptr<Nexus> other;
};

TEST_F(PiecesTest, WriteSameOfZerosHoldsOnePieceAtATime) {
  Task& zeroing = start(*nexus, write_same(8, 2 * kPiece), Bytes(512));
  expect_pieces(zeroing, Op::kWriteZeroes);
  EXPECT_TRUE(backend->all(8 * 512, 2 * kPiece * 512, 0));
  EXPECT_EQ(backend->data[7 * 512], 0xee);
  EXPECT_EQ(backend->data[(2 * kPiece + 8) * 512], 0xee);
}

TEST_F(PiecesTest, WriteSameOfAPatternHoldsOnePieceAtATime) {
  backend->holds = false;
  Task& filling = start(*nexus, write_same(8, 2 * kPiece), Bytes(512, 0x21));
  EXPECT_FALSE(filling.done()) << "the reactor serves others between two pieces";
  EXPECT_TRUE(read(2 * kPiece).done()) << "a block of a later piece is not in use";
  reactors.run();
  EXPECT_TRUE(filling.done());
  EXPECT_TRUE(backend->all(8 * 512, 2 * kPiece * 512, 0x21));
  EXPECT_EQ(backend->data[(2 * kPiece + 8) * 512], 0xee);
}

TEST_F(PiecesTest, UnmapHoldsOnePieceOfADescriptorAtATime) {
  Task& unmapping = unmap({{8, static_cast<uint32_t>(2 * kPiece)}});
  expect_pieces(unmapping, Op::kDiscard);
}

TEST_F(PiecesTest, AnAbortedWriteSameBeginsNoFurtherPiece) {
  Task& zeroing = start(*nexus, write_same(0, 3 * kPiece), Bytes(512));
  nexus->abort(zeroing.command);
  backend->release_all();
  reactors.run();
  EXPECT_TRUE(zeroing.done());
  EXPECT_EQ(backend->submitted.size(), 1u);
  EXPECT_EQ(backend->data[kPiece * 512], 0xee);
}

TEST_F(SpaceTest, WriteSameWithoutADataOutBufferWritesZeros) {
  Task& task = start(*nexus, write_same(0, 8, 0x01));
  EXPECT_EQ(task.command.data_out_wanted, 0u);
  EXPECT_EQ(task.command.status, Status::kGood);
  EXPECT_TRUE(backend->all(0, 4096, 0));
}

TEST_F(SpaceTest, AnchorIsRefused) {
  EXPECT_EQ(start(*nexus, write_same(0, 8, 0x18), Bytes(512)).sense(), 0x052400u);
}

TEST_F(SpaceTest, WriteSameOfZeroBlocksIsRefusedAsBlockLimitsDeclare) {
  EXPECT_TRUE(unit->limits().write_same_non_zero);
  Task& task = start(*nexus, write_same(0, 0), Bytes(512));
  EXPECT_EQ(task.sense(), 0x052400u);
  EXPECT_EQ(load_be16(&task.command.sense[16]), 10);
}

TEST_F(SpaceTest, WriteSameWithLessThanABlockOfDataChangesNothing) {
  EXPECT_EQ(start(*nexus, write_same(0, 8), Bytes(511)).key(), 5);
  EXPECT_TRUE(backend->submitted.empty());
}

TEST_F(SpaceTest, UnmappedBlocksReadZerosToTheLastByte) {
  EXPECT_EQ(unmap({{3, 20}, {100, 1}}).command.status, Status::kGood);
  EXPECT_EQ(backend->submitted.size(), 2u);
  EXPECT_TRUE(backend->all(3 * 512, 20 * 512, 0));
  EXPECT_TRUE(backend->all(100 * 512, 512, 0));
  EXPECT_EQ(backend->data[3 * 512 - 1], 0xee);
  EXPECT_EQ(backend->data[23 * 512], 0xee);
}

TEST_F(SpaceTest, UnmapOfNoBlocksReturnsGood) {
  EXPECT_EQ(unmap({}).command.status, Status::kGood);
  EXPECT_EQ(unmap({{0, 0}, {5, 0}}).command.status, Status::kGood);
  EXPECT_EQ(start(*nexus, Bytes{0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0}).command.status, Status::kGood);
  EXPECT_TRUE(backend->submitted.empty());
}

TEST_F(SpaceTest, AnInvalidUnmapDescriptorIsRefusedBeforeAnyBlockIsUnmapped) {
  EXPECT_EQ(unmap({{0, 8}, {kBlocks, 1}}).sense(), 0x052100u);
  EXPECT_EQ(unmap(std::vector<Extent>(limits::kMaxUnmapDescriptors + 1, {0, 1})).sense(),
            0x052600u);
  EXPECT_TRUE(backend->submitted.empty());
}

TEST_F(SpaceTest, UnmapHandlesTheMaximumNumberOfDescriptors) {
  std::vector<Extent> all;
  for (uint32_t i = 0; i < limits::kMaxUnmapDescriptors; ++i) all.push_back({i * 2, 1});
  EXPECT_EQ(unmap(all).command.status, Status::kGood);
  EXPECT_EQ(backend->submitted.size(), all.size());
}

TEST_F(SpaceTest, AnUnmapWaitsForAWriteToItsBlocksOneDescriptorAtATime) {
  backend->holds = true;
  Task& write = start(*nexus, write16(50, 1), Bytes(512));
  Task& task = unmap({{0, 8}, {48, 8}});
  EXPECT_EQ(backend->held.size(), 2u);
  backend->release_one();
  EXPECT_TRUE(write.done());
  backend->release_one();
  EXPECT_EQ(backend->held.size(), 1u);
  // The first descriptor's blocks are free again while the second is discarded.
  start(*nexus, write16(0, 8), Bytes(4096));
  EXPECT_EQ(backend->held.size(), 2u);
  backend->release_all();
  EXPECT_EQ(task.command.status, Status::kGood);
}

TEST_F(SpaceTest, AnAbortedUnmapStopsBetweenDescriptors) {
  backend->holds = true;
  Task& task = unmap({{0, 8}, {48, 8}});
  nexus->abort(task.command);
  backend->release_all();
  EXPECT_TRUE(task.done() && task.command.aborted());
  EXPECT_EQ(backend->submitted.size(), 1u);
}

TEST_F(SpaceTest, GetLbaStatusDistinguishesMappedFromDeallocatedBlocks) {
  start(*nexus, write16(16, 8), Bytes(4096));
  Bytes cdb(16);
  cdb[0] = 0x9e;
  cdb[1] = 0x12;
  put_be(cdb, 10, 4, 8 + 3 * 16);
  const Bytes data = start(*nexus, cdb).answer();
  ASSERT_EQ(data.size(), 56u);
  EXPECT_EQ(load_be64(&data[8]), 0u);
  EXPECT_EQ(load_be32(&data[16]), 16u);
  EXPECT_EQ(data[20] & 0x0f, 1);
  EXPECT_EQ(load_be64(&data[24]), 16u);
  EXPECT_EQ(load_be32(&data[32]), 8u);
  EXPECT_EQ(data[36] & 0x0f, 0);
  EXPECT_EQ(load_be64(&data[40]), 24u);
  put_be(cdb, 2, 8, kBlocks);
  EXPECT_EQ(start(*nexus, cdb).sense(), 0x052100u);
}

// A medium that hangs must not stop the reactor that asks it.
TEST_F(SpaceTest, QueriesOfTheMediumEndTheCommandWhenTheMediumAnswers) {
  backend->holds_queries = true;
  backend->free = uint64_t{1} << 30;
  Bytes lba_status(16);
  lba_status[0] = 0x9e;
  lba_status[1] = 0x12;
  put_be(lba_status, 10, 4, 8 + 16);
  Bytes provisioning(10);  // LOG SENSE of the page Logical Block Provisioning
  provisioning[0] = 0x4d;
  provisioning[2] = 0x40 | 0x0c;
  put_be(provisioning, 7, 2, 252);
  for (const Bytes& cdb : {lba_status, provisioning}) {
    Task& task = start(*nexus, cdb);
    EXPECT_FALSE(task.done());
    ASSERT_NE(backend->held_query, nullptr);
    Task& read = start(*nexus, read16(0, 8));
    EXPECT_TRUE(read.done()) << "the reactor goes on";
    backend->answer_query();
    EXPECT_TRUE(task.done());
    EXPECT_EQ(task.command.status, Status::kGood);
    EXPECT_GT(task.answer().size(), 4u);
  }
}

TEST_F(SpaceTest, ACommandThatWasAbortedWhileTheMediumWasAskedEndsAsAborted) {
  backend->holds_queries = true;
  Bytes cdb(16);
  cdb[0] = 0x9e;
  cdb[1] = 0x12;
  put_be(cdb, 10, 4, 8 + 16);
  Task& task = start(*nexus, cdb);
  nexus->abort_task_set(0, [] {});
  EXPECT_TRUE(task.command.aborted());
  EXPECT_FALSE(task.done()) << "its query is not complete";
  backend->answer_query();
  EXPECT_TRUE(task.done());
  EXPECT_TRUE(task.answer().empty());
}

TEST_F(SpaceTest, SynchronizeCacheFlushesAndChecksItsRange) {
  EXPECT_EQ(start(*nexus, cdb16(0x91, 0, 0)).command.status, Status::kGood);
  ASSERT_EQ(backend->submitted.size(), 1u);
  EXPECT_EQ(backend->submitted[0].op, Op::kFlush);
  EXPECT_EQ(start(*nexus, cdb16(0x91, kBlocks, 1)).sense(), 0x052100u);
  backend->fail_with = -EIO;
  EXPECT_EQ(start(*nexus, cdb16(0x91, 0, 0)).sense(), 0x030c00u);
}

TEST_F(SpaceTest, PreFetchChecksItsRange) {
  EXPECT_EQ(start(*nexus, cdb16(0x90, 0, 8)).command.status, Status::kGood);
  EXPECT_EQ(start(*nexus, cdb16(0x90, kBlocks, 1)).sense(), 0x052100u);
}

TEST_F(SpaceTest, EjectingAndPowerConditionsAreRefused) {
  EXPECT_EQ(start(*nexus, Bytes{0x1b, 0, 0, 0, 0x02, 0}).sense(), 0x052400u);
  EXPECT_EQ(start(*nexus, Bytes{0x1b, 0, 0, 0, 0x30, 0}).sense(), 0x052400u);
  EXPECT_EQ(unit->gate(), 0u);
}

class ThickTest : public SpaceTest {
 protected:
  void prepare_backend(TestBackend& b) override { b.information.discard_granularity = 0; }
};

TEST_F(ThickTest, AUnitWithoutDeallocationRefusesUnmapAndTheUnmapBit) {
  EXPECT_EQ(unmap({{0, 8}}).sense(), 0x052000u);
  EXPECT_EQ(start(*nexus, write_same(0, 8, 0x08), Bytes(512)).sense(), 0x052400u);
  EXPECT_EQ(start(*nexus, write_same(0, 8), Bytes(512)).command.status, Status::kGood);
}

TEST_F(SpaceTest, UnmapConsumesOneCommandAndNoBytesOfTheQosLimits) {
  unit->set_qos({.iops = 10, .iops_burst = 1, .bytes_per_second = 4096});
  EXPECT_TRUE(unmap({{0, 1000}, {1000, 1000}}).done());
  Task& second = unmap({{0, 8}});
  nexus->tick();
  EXPECT_EQ(second.completions, 0);
  now += 100 * kMillisecond;
  nexus->tick();
  EXPECT_TRUE(second.done());
  now += 100 * kMillisecond;
  EXPECT_TRUE(start(*nexus, read16(0, 1)).done()) << "bytes are left";
}

TEST_F(SpaceTest, WriteSameConsumesQosBytesForWrittenButNotForUnmappedBlocks) {
  const auto taken = [this](uint8_t flags, uint8_t pattern) {
    unit->set_qos({.bytes_per_second = 4096});
    EXPECT_TRUE(start(*nexus, write_same(0, 16, flags), Bytes(512, pattern)).done());
    Task& next = start(*nexus, read16(0, 1));
    const bool held = next.completions == 0;
    now += 10 * kSecond;
    nexus->tick();
    EXPECT_TRUE(next.done());
    return held;
  };
  EXPECT_TRUE(taken(0, 1));
  EXPECT_TRUE(taken(0x08, 1)) << "a pattern that no deallocation leaves is written";
  EXPECT_TRUE(taken(0, 0));
  EXPECT_FALSE(taken(0x08, 0));
}

}  // namespace
}  // namespace sluice::lun
