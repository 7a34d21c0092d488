// READ and WRITE.
#include <gtest/gtest.h>

#include "nexus/lun_fixture.h"
#include "unit/statistics.h"

namespace sluice::lun {
namespace {

using scsi::Status;

class MediaTest : public LunTest {
 protected:
  using LunTest::LunTest;
  void SetUp() override {
    LunTest::SetUp();
    nexus = open("a");
  }
  std::shared_ptr<Nexus> nexus;
};

TEST_F(MediaTest, AReadReturnsTheWrittenData) {
  Bytes data(4096);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 7);
  EXPECT_EQ(start(*nexus, write16(3, 8), data).command.status, Status::kGood);
  Task& read = start(*nexus, read16(3, 8));
  EXPECT_EQ(read.command.data_in_size, 4096u);
  EXPECT_EQ(read.answer(), data);
}

TEST_F(MediaTest, AWriteAcceptsDataSlicesSmallerThanABlock) {
  Bytes data(4096, 0x5a);
  Task& task = make(write16(0, 8), data);
  ASSERT_TRUE(begin(*nexus, task));
  send_data(*nexus, task, 100);
  EXPECT_EQ(task.command.status, Status::kGood);
  EXPECT_TRUE(backend->all(0, 4096, 0x5a));
}

TEST_F(MediaTest, ShortTransfersOfTheBackendAreContinued) {
  backend->most_per_io = 1024;
  Bytes data(1u << 16, 0x11);
  EXPECT_EQ(start(*nexus, write16(0, 128), data).command.status, Status::kGood);
  EXPECT_TRUE(backend->all(0, data.size(), 0x11));
  EXPECT_EQ(start(*nexus, read16(0, 128)).answer(), data);
}

TEST_F(MediaTest, MoreSlicesThanOneRequestHoldsAreWrittenInSeveralRequests) {
  Bytes data(2048 * 512, 0x77);
  Task& task = make(write16(0, 2048), data);
  ASSERT_TRUE(begin(*nexus, task));
  send_data(*nexus, task, 512);  // 2048 slices, IOV_MAX is 1024
  EXPECT_EQ(task.command.status, Status::kGood);
  EXPECT_EQ(backend->submitted.size(), 2u);
  EXPECT_TRUE(backend->all(0, data.size(), 0x77));
}

TEST_F(MediaTest, AReadOfLentMemoryReturnsItWithoutCopying) {
  backend->lends = true;
  Task& task = start(*nexus, read16(4, 8));
  ASSERT_EQ(task.command.data_in.size(), 1u);
  EXPECT_EQ(task.command.data_in[0].data, backend->data.data() + 4 * 512);
  EXPECT_EQ(task.command.data_in[0].owner.get(), nexus->find(0)->backend_loan().get())
      << "keeps the backend";
  EXPECT_TRUE(backend->submitted.empty());
}

TEST_F(MediaTest, AReadThatNeedsStableDataCopiesLentMemory) {
  backend->lends = true;
  Task& task = make(read16(4, 8));
  task.command.needs_stable_data = true;
  begin(*nexus, task);
  backend->fill(4 * 512, 4096, 0xff);
  EXPECT_EQ(task.answer(), Bytes(4096, 0));
}

TEST_F(MediaTest, AReadThatNeedsStableDataDoesNotCopyLentConstants) {
  backend->lends = true;
  backend->information.lends_constants = true;
  Task& task = make(read16(4, 8));
  task.command.needs_stable_data = true;
  begin(*nexus, task);
  ASSERT_EQ(task.command.data_in.size(), 1u);
  EXPECT_EQ(task.command.data_in[0].data, backend->data.data() + 4 * 512);
  EXPECT_TRUE(backend->submitted.empty());
}

TEST_F(MediaTest, AReadTransfersOnlyTheBlocksThatTheInitiatorExpects) {
  Task& task = make(read16(0, 8));
  task.command.expected_data_in = 700;
  begin(*nexus, task);
  EXPECT_EQ(task.command.data_in_size, 4096u);  // the transport reports an overflow of 3396
  EXPECT_EQ(task.answer().size(), 1024u);
  ASSERT_EQ(backend->submitted.size(), 1u);
  EXPECT_EQ(backend->submitted[0].length, 1024u);
}

TEST_F(MediaTest, AWriteWithFewerBlocksThanItsCdbStatesWritesThem) {
  Task& task = make(write16(0, 8), Bytes(1024, 0x33));
  ASSERT_TRUE(begin(*nexus, task));
  EXPECT_EQ(task.command.data_out_wanted, 4096u);
  send_data(*nexus, task);
  EXPECT_EQ(task.command.status, Status::kGood);
  EXPECT_TRUE(backend->all(0, 1024, 0x33));
  EXPECT_TRUE(backend->all(1024, 4096, 0));
}

// GOOD would acknowledge bytes that no block holds.
TEST_F(MediaTest, DataThatEndsWithinABlockIsRefusedWithoutAnyEffect) {
  const auto cdb_of = [](uint8_t opcode, uint8_t byte1) {
    Bytes cdb = write16(0, 8);
    cdb[0] = opcode;
    cdb[1] = byte1;
    return cdb;
  };
  const std::pair<const char*, Bytes> commands[] = {
      {"WRITE(16)", write16(0, 8)},
      {"WRITE AND VERIFY(16)", cdb_of(0x8e, 0x02)},
      {"VERIFY(16), BYTCHK 01b", cdb_of(0x8f, 0x02)},
      {"ORWRITE(16)", cdb_of(0x8b, 0)},
  };
  for (const auto& [name, cdb] : commands) {
    for (const size_t announced : {1u, 200u, 511u, 1300u, 4095u}) {
      Task& task = make(cdb, Bytes(announced, 0x33));
      EXPECT_FALSE(begin(*nexus, task)) << name << " asks for its data";
      EXPECT_EQ(task.sense(), 0x050e03u) << name << " with " << announced << " bytes";
    }
  }
  EXPECT_TRUE(backend->submitted.empty());
}

TEST_F(MediaTest, AWriteForWhichNoDataIsExpectedWritesNothing) {
  Task& task = start(*nexus, write16(0, 8));
  EXPECT_TRUE(task.done());
  EXPECT_EQ(task.command.status, Status::kGood);
  EXPECT_EQ(task.command.data_out_wanted, 4096u);
  EXPECT_TRUE(backend->submitted.empty());
}

TEST_F(MediaTest, FuaReachesTheBackendAndDpoIsIgnored) {
  Bytes cdb = write16(0, 1);
  cdb[1] = 0x18;  // DPO and FUA
  EXPECT_EQ(start(*nexus, cdb, Bytes(512)).command.status, Status::kGood);
  EXPECT_EQ(backend->submitted.back().flags, backend::kIoFua);
  start(*nexus, write16(0, 1), Bytes(512));
  EXPECT_EQ(backend->submitted.back().flags, 0);
}

TEST_F(MediaTest, ATransferOfZeroBlocksReturnsGoodUpToTheEndOfTheMedium) {
  EXPECT_EQ(start(*nexus, read16(0, 0)).command.status, Status::kGood);
  EXPECT_EQ(start(*nexus, write16(kBlocks, 0)).command.status, Status::kGood);
  EXPECT_EQ(start(*nexus, read16(kBlocks + 1, 0)).sense(), 0x052100u);
  EXPECT_TRUE(backend->submitted.empty());
}

TEST_F(MediaTest, AnAccessBeyondTheEndReportsTheFirstInvalidBlock) {
  Task& task = start(*nexus, read16(kBlocks - 1, 2));
  EXPECT_EQ(task.sense(), 0x052100u);
  EXPECT_EQ(task.information(), kBlocks);
  EXPECT_EQ(start(*nexus, write16(UINT64_MAX, 1), Bytes(512)).sense(), 0x052100u);
  EXPECT_EQ(start(*nexus, read16(UINT64_MAX - 3, 8)).sense(), 0x052100u);
}

TEST_F(MediaTest, ARefusedWriteRequestsNoData) {
  Task& task = make(write16(kBlocks, 1), Bytes(512));
  EXPECT_FALSE(begin(*nexus, task));
  EXPECT_EQ(task.sense(), 0x052100u);
}

TEST_F(MediaTest, ProtectionInformationIsRefused) {
  Bytes cdb = read16(0, 1);
  cdb[1] = 0x20;
  EXPECT_EQ(start(*nexus, cdb).sense(), 0x052400u);
}

TEST_F(MediaTest, AMediumErrorReportsItsBlock) {
  backend->fail_with = -EIO;
  Task& read = start(*nexus, read16(17, 4));
  EXPECT_EQ(read.sense(), 0x031100u);
  EXPECT_EQ(read.information(), 17u);
  EXPECT_TRUE(read.answer().empty());
  EXPECT_EQ(start(*nexus, write16(17, 4), Bytes(2048)).sense(), 0x030c00u);
}

TEST_F(MediaTest, ErrnoValuesMapToTheirSenseData) {
  const std::pair<int, uint32_t> expected[] = {
      {ENOSPC, 0x072707},    {EDQUOT, 0x072707},     {EROFS, 0x072700},
      {ETIMEDOUT, 0x0b4b06}, {EOPNOTSUPP, 0x052000}, {EINVAL, 0x044400},
  };
  for (const auto& [error, sense] : expected) {
    backend->fail_with = -error;
    EXPECT_EQ(start(*nexus, write16(0, 1), Bytes(512)).sense(), sense) << error;
  }
  backend->fail_with = -ENOMEM;
  EXPECT_EQ(start(*nexus, write16(0, 1), Bytes(512)).command.status, Status::kBusy);
}

TEST_F(MediaTest, ACommandThatAFencedBackendRefusesDropsItsNexus) {
  backend->fail_with = -ESHUTDOWN;
  EXPECT_EQ(start(*nexus, write16(0, 1), Bytes(512)).command.outcome, Outcome::kUnknown);
  EXPECT_EQ(start(*nexus, read16(0, 1)).command.outcome, Outcome::kUnknown);
  backend->fail_with = 0;
  EXPECT_NE(start(*nexus, read16(0, 1)).command.outcome, Outcome::kUnknown);
}

TEST_F(MediaTest, AReadWithoutMemoryReturnsBusyAndAllocatesNothing) {
  BufferPool small(BufferPool::kLargest);
  NexusId id;
  id.initiator_name = "iqn.2026-11.test:small";
  auto tight = Nexus::open(target, id, {&aio, &small, &reactors, 0, &now, &latencies});
  nexuses.push_back(tight);
  start(*tight, test_unit_ready());
  Task& task = start(*tight, read16(0, 2048));
  EXPECT_EQ(task.command.status, Status::kBusy);
  EXPECT_EQ(small.in_use(), 0u);
}

TEST_F(MediaTest, AnOverlappingWriteWaitsRegardlessOfItsNexus) {
  auto other = open("b", 1);
  backend->holds = true;
  Task& first = start(*nexus, write16(0, 8), Bytes(4096, 1));
  Task& second = start(*other, write16(7, 8), Bytes(4096, 2));
  Task& apart = start(*other, write16(64, 8), Bytes(4096, 3));
  EXPECT_EQ(backend->held.size(), 2u);
  backend->release_one();
  EXPECT_TRUE(first.done());
  reactors.run();
  backend->release_all();
  EXPECT_TRUE(second.done() && apart.done());
  EXPECT_TRUE(backend->all(7 * 512, 4096, 2));
}

TEST_F(MediaTest, OverlappingReadsRunTogether) {
  backend->holds = true;
  start(*nexus, read16(0, 8));
  start(*nexus, read16(4, 8));
  EXPECT_EQ(backend->held.size(), 2u);
}

TEST_F(MediaTest, OperationsBytesFailuresAndLatencyAreCounted) {
  start(*nexus, write16(0, 8), Bytes(4096));
  start(*nexus, read16(0, 4));
  start(*nexus, read16(kBlocks, 1));
  backend->holds = true;
  now = 0;
  start(*nexus, read16(0, 1));
  EXPECT_EQ(unit->statistics().snapshot().in_flight, 1u);
  now = 1'000'000;
  latencies.settle(0);
  backend->release_all();
  latencies.settle(now);
  const UnitSnapshot s = unit->statistics().snapshot();
  EXPECT_EQ(s.operations[static_cast<size_t>(Activity::kRead)], 3u);
  EXPECT_EQ(s.operations[static_cast<size_t>(Activity::kWrite)], 1u);
  EXPECT_EQ(s.read_bytes, 5u * 512);
  EXPECT_EQ(s.written_bytes, 4096u);
  EXPECT_EQ(s.failures[static_cast<size_t>(Failure::kIllegal)], 1u);
  EXPECT_EQ(s.in_flight, 0u);
  EXPECT_EQ(s.read_latency.count, 3u);
  EXPECT_EQ(s.read_latency.sum, 1'000'000u);
  EXPECT_GE(s.read_latency.quantile(1.0), 1'000'000);
  EXPECT_LT(s.read_latency.quantile(1.0), 1'250'000);
  EXPECT_EQ(s.read_latency.quantile(0.5), 1024);
}

TEST(LatencyBuckets, CoverEveryLatencyWithoutGaps) {
  EXPECT_EQ(latency_bucket(0), 0u);
  EXPECT_EQ(latency_bucket(-5), 0u);
  EXPECT_EQ(latency_bucket(INT64_MAX), kLatencyBuckets - 1);
  for (unsigned i = 0; i + 1 < kLatencyBuckets; ++i) {
    EXPECT_EQ(latency_bucket(latency_bucket_end(i) - 1), i);
    EXPECT_EQ(latency_bucket(latency_bucket_end(i)), i + 1);
  }
}

class Media4kTest : public MediaTest {
 protected:
  Media4kTest() : MediaTest(1, 4096) {}
};

TEST_F(Media4kTest, BlocksOf4096BytesAreWrittenAndRead) {
  Bytes data(8192, 0x42);
  EXPECT_EQ(start(*nexus, write16(5, 2), data).command.status, Status::kGood);
  EXPECT_TRUE(backend->all(5 * 4096, 8192, 0x42));
  EXPECT_EQ(start(*nexus, read16(5, 2)).answer(), data);
}

TEST_F(Media4kTest, ATransferAboveTheMaximumIsRefusedWithAFieldPointer) {
  ASSERT_TRUE(unit->resize(uint64_t{64} << 20).ok());
  start(*nexus, test_unit_ready());
  Task& task = start(*nexus, read16(0, limits::kMaxTransferBytes / 4096 + 1));
  EXPECT_EQ(task.sense(), 0x052400u);
  EXPECT_EQ(task.command.sense[15], 0xc0);  // SKSV, C/D
  EXPECT_EQ(load_be16(&task.command.sense[16]), 10);
  EXPECT_EQ(start(*nexus, read16(0, limits::kMaxTransferBytes / 4096)).command.status,
            Status::kGood);
}

class AtomicTest : public MediaTest {
 protected:
  void prepare_backend(TestBackend& b) override { b.information.atomic_write_bytes = 16384; }
};

TEST_F(AtomicTest, WriteAtomicAcceptsOnlyTheAtomicSizeAndAlignmentOfTheMedium) {
  EXPECT_EQ(start(*nexus, cdb16(0x9c, 32, 0), {}).command.status, Status::kGood);
  Bytes cdb(16);
  cdb[0] = 0x9c;
  put_be(cdb, 2, 8, 32);
  put_be(cdb, 12, 2, 32);
  EXPECT_EQ(start(*nexus, cdb, Bytes(16384, 9)).command.status, Status::kGood);
  EXPECT_TRUE(backend->all(16384, 16384, 9));
  EXPECT_EQ(backend->submitted.back().flags, backend::kIoAtomic);
  put_be(cdb, 12, 2, 33);
  EXPECT_EQ(start(*nexus, cdb, Bytes(33 * 512)).sense(), 0x052400u);
  put_be(cdb, 12, 2, 8);
  EXPECT_EQ(start(*nexus, cdb, Bytes(4096)).sense(), 0x052400u);
  put_be(cdb, 2, 8, 33);
  put_be(cdb, 12, 2, 32);
  EXPECT_EQ(start(*nexus, cdb, Bytes(16384)).sense(), 0x052400u);
  EXPECT_EQ(backend->submitted.size(), 1u);
}

TEST_F(AtomicTest, WriteAtomicIsOneBackendRequestHoweverManySlicesItsDataHas) {
  Bytes cdb(16);
  cdb[0] = 0x9c;
  put_be(cdb, 12, 2, 32);
  Task& task = make(cdb, Bytes(16384, 7));
  ASSERT_TRUE(begin(*nexus, task));
  send_data(*nexus, task, 8);
  EXPECT_EQ(task.command.status, Status::kGood);
  ASSERT_EQ(backend->submitted.size(), 1u);
  EXPECT_EQ(backend->submitted[0].length, 16384u);
  EXPECT_TRUE(backend->all(0, 16384, 7));
}

TEST_F(AtomicTest, BlockLimitsReportTheOnlyAcceptedAtomicSize) {
  const Bytes page = start(*nexus, Bytes{0x12, 1, 0xb0, 0, 64, 0}).answer();
  ASSERT_EQ(page.size(), 64u);
  EXPECT_EQ(load_be32(&page[44]), 32u) << "MAXIMUM ATOMIC TRANSFER LENGTH";
  EXPECT_EQ(load_be32(&page[48]), 32u) << "ATOMIC ALIGNMENT";
  EXPECT_EQ(load_be32(&page[52]), 32u) << "ATOMIC TRANSFER LENGTH GRANULARITY";
}

TEST_F(MediaTest, WriteAtomicIsUnsupportedIfTheMediumIsNotAtomic) {
  Bytes cdb(16);
  cdb[0] = 0x9c;
  EXPECT_EQ(start(*nexus, cdb).sense(), 0x052000u);
  const Bytes page = start(*nexus, Bytes{0x12, 1, 0xb0, 0, 64, 0}).answer();
  EXPECT_EQ(load_be32(&page[44]), 0u);
}

}  // namespace
}  // namespace sluice::lun
