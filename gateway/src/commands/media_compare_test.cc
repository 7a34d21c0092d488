// VERIFY, WRITE AND VERIFY, COMPARE AND WRITE, ORWRITE.
#include <gtest/gtest.h>

#include "nexus/lun_fixture.h"

namespace sluice::lun {
namespace {

using scsi::Status;

class CompareTest : public LunTest {
 protected:
  void SetUp() override {
    LunTest::SetUp();
    nexus = open("a");
  }
  static Bytes compare_and_write(uint64_t lba, uint8_t blocks) {
    Bytes cdb(16);
    cdb[0] = 0x89;
    put_be(cdb, 2, 8, lba);
    cdb[13] = blocks;
    return cdb;
  }
  static Bytes halves(size_t size, uint8_t compare, uint8_t write) {
    Bytes data(size, compare);
    data.insert(data.end(), size, write);
    return data;
  }

  std::shared_ptr<Nexus> nexus;
};

TEST_F(CompareTest, CompareAndWriteWritesIfTheDataMatches) {
  backend->fill(512, 1024, 0x11);
  Task& task = start(*nexus, compare_and_write(1, 2), halves(1024, 0x11, 0x22));
  EXPECT_EQ(task.command.status, Status::kGood);
  EXPECT_TRUE(backend->all(512, 1024, 0x22));
  EXPECT_TRUE(task.answer().empty());
  EXPECT_EQ(task.command.data_in_size, 0u);
}

TEST_F(CompareTest, AMiscompareReportsTheFirstDifferingByteAndWritesNothing) {
  backend->fill(0, 1024, 0x11);
  backend->data[700] = 0x12;
  backend->data[900] = 0x12;
  Task& task = start(*nexus, compare_and_write(0, 2), halves(1024, 0x11, 0x22));
  EXPECT_EQ(task.sense(), 0x0e1d00u);
  EXPECT_EQ(task.command.sense[0] & 0x80, 0x80);  // VALID
  EXPECT_EQ(task.information(), 700u);
  EXPECT_TRUE(backend->all(0, 700, 0x11));
}

TEST_F(CompareTest, AMiscompareIsFoundInDataSlicesOfAnySize) {
  backend->fill(0, 1024, 0x11);
  backend->data[1023] = 0;
  for (const uint32_t piece : {1u, 100u, 512u, 1000u, 2048u}) {
    Task& task = make(compare_and_write(0, 2), halves(1024, 0x11, 0x22));
    ASSERT_TRUE(begin(*nexus, task));
    send_data(*nexus, task, piece);
    EXPECT_EQ(task.sense(), 0x0e1d00u);
    EXPECT_EQ(task.information(), 1023u) << piece;
  }
}

TEST_F(CompareTest, CompareAndWriteOfZeroBlocksReturnsGood) {
  EXPECT_EQ(start(*nexus, compare_and_write(0, 0)).command.status, Status::kGood);
  EXPECT_TRUE(backend->submitted.empty());
}

TEST_F(CompareTest, CompareAndWriteWithTooLittleDataChangesNothing) {
  Task& task = start(*nexus, compare_and_write(0, 2), Bytes(1024, 0));
  EXPECT_EQ(task.key(), 5);
  EXPECT_TRUE(backend->submitted.empty());
}

TEST_F(CompareTest, CompareAndWriteLocksItsBlocksBetweenReadAndWrite) {
  backend->holds = true;
  Task& caw = start(*nexus, compare_and_write(0, 1), halves(512, 0, 1));
  Task& second = start(*nexus, compare_and_write(0, 1), halves(512, 0, 2));
  Task& read = start(*nexus, read16(0, 1));
  EXPECT_EQ(backend->held.size(), 1u);
  backend->release_one();
  EXPECT_EQ(backend->held.size(), 1u);
  backend->release_one();
  EXPECT_TRUE(caw.done());
  EXPECT_EQ(caw.command.status, Status::kGood);
  backend->release_all();
  EXPECT_EQ(second.sense(), 0x0e1d00u);
  EXPECT_EQ(read.answer(), Bytes(512, 1));
}

TEST_F(CompareTest, CompareAndWriteAbortedDuringItsReadWritesNothing) {
  backend->holds = true;
  Task& caw = start(*nexus, compare_and_write(0, 1), halves(512, 0, 1));
  nexus->abort(caw.command);
  backend->release_all();
  EXPECT_TRUE(caw.done() && caw.command.aborted());
  EXPECT_EQ(backend->submitted.size(), 1u);
}

TEST_F(CompareTest, VerifyWithoutDataReadsTheMedium) {
  Task& task = start(*nexus, cdb16(0x8f, 8, 64));
  EXPECT_EQ(task.command.status, Status::kGood);
  ASSERT_EQ(backend->submitted.size(), 1u);
  EXPECT_EQ(backend->submitted[0].length, 64u * 512);
  EXPECT_EQ(task.command.data_in_size, 0u);
  backend->fail_with = -EIO;
  EXPECT_EQ(start(*nexus, cdb16(0x8f, 8, 64)).sense(), 0x031100u);
}

TEST_F(CompareTest, VerifyComparesByteByByte) {
  backend->fill(0, 4096, 7);
  EXPECT_EQ(start(*nexus, cdb16(0x8f, 0, 8, 0x02), Bytes(4096, 7)).command.status, Status::kGood);
  Bytes different(4096, 7);
  different[3000] = 8;
  Task& task = start(*nexus, cdb16(0x8f, 0, 8, 0x02), different);
  EXPECT_EQ(task.sense(), 0x0e1d00u);
  EXPECT_EQ(task.information(), 3000u);
}

TEST_F(CompareTest, VerifyComparesMoreThanOneChunk) {
  const Bytes data(1000 * 512, 3);
  backend->fill(0, data.size(), 3);
  EXPECT_EQ(start(*nexus, cdb16(0x8f, 0, 1000, 0x02), data).command.status, Status::kGood);
  EXPECT_EQ(backend->submitted.size(), 2u);
  backend->data[999 * 512 + 5] = 4;
  Task& task = start(*nexus, cdb16(0x8f, 0, 1000, 0x02), data);
  EXPECT_EQ(task.information(), 999u * 512 + 5);
}

TEST_F(CompareTest, VerifyAgainstOneBlockRequestsOneBlockOfData) {
  backend->fill(0, 4096, 7);
  Task& task = make(cdb16(0x8f, 0, 8, 0x06), Bytes(512, 7));
  ASSERT_TRUE(begin(*nexus, task));
  EXPECT_EQ(task.command.data_out_wanted, 512u);
  send_data(*nexus, task);
  EXPECT_EQ(task.command.status, Status::kGood);
  backend->data[4000] = 8;
  Task& bad = start(*nexus, cdb16(0x8f, 0, 8, 0x06), Bytes(512, 7));
  EXPECT_EQ(bad.sense(), 0x0e1d00u);
  EXPECT_EQ(bad.information(), 4000u % 512);
}

TEST_F(CompareTest, ReservedBytchkValuesAreRefused) {
  EXPECT_EQ(start(*nexus, cdb16(0x8f, 0, 8, 0x04)).sense(), 0x052400u);
  EXPECT_EQ(start(*nexus, cdb16(0x8e, 0, 8, 0x04), Bytes(4096)).sense(), 0x052400u);
  EXPECT_EQ(start(*nexus, cdb16(0x8e, 0, 8, 0x06), Bytes(4096)).sense(), 0x052400u);
}

TEST_F(CompareTest, WriteAndVerifyWritesThroughThenReadsBack) {
  Task& task = start(*nexus, cdb16(0x8e, 0, 8, 0x02), Bytes(4096, 5));
  EXPECT_EQ(task.command.status, Status::kGood);
  ASSERT_EQ(backend->submitted.size(), 2u);
  EXPECT_EQ(backend->submitted[0].flags, backend::kIoFua);
  EXPECT_EQ(backend->submitted[1].op, backend::Op::kRead);
  EXPECT_TRUE(backend->all(0, 4096, 5));
}

TEST_F(CompareTest, OrWriteSetsBitsAndPreservesOtherBits) {
  backend->fill(0, 1024, 0x0f);
  Task& task = make(cdb16(0x8b, 0, 2), Bytes(1024, 0x30));
  ASSERT_TRUE(begin(*nexus, task));
  send_data(*nexus, task, 300);
  EXPECT_EQ(task.command.status, Status::kGood);
  EXPECT_TRUE(backend->all(0, 1024, 0x3f));
  EXPECT_EQ(task.command.data_in_size, 0u);
}

}  // namespace
}  // namespace sluice::lun
