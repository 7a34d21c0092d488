// Commands whose expected data transfer length doesn't cover what their CDB asks for.
#include <gtest/gtest.h>

#include "nexus/lun_fixture.h"

namespace sluice::lun {
namespace {

constexpr uint32_t kShortData = 0x050e03;  // INVALID FIELD IN COMMAND INFORMATION UNIT

class ShortDataOutTest : public LunTest {
 protected:
  void SetUp() override {
    LunTest::SetUp();
    backend->fill(0, kBlocks * block, 0x11);
    host = open("host");
  }
  // What a command answers that is sent `bytes` of the data it asks for.
  uint32_t sense_of(const Bytes& cdb, size_t bytes) {
    Task& task = start(*host, cdb, Bytes(bytes, 0xee));
    EXPECT_TRUE(task.done());
    return task.sense();
  }
  bool unchanged() const { return backend->all(0, kBlocks * block, 0x11); }
  static Bytes parameters(uint8_t opcode, uint8_t action, size_t length_at, uint8_t length) {
    Bytes cdb(16);
    cdb[0] = opcode;
    cdb[1] = action;
    cdb[length_at] = length;
    return cdb;
  }

  std::shared_ptr<Nexus> host;
};

TEST_F(ShortDataOutTest, AWriteThatEndsWithinABlockFailsWithoutEffect) {
  const Bytes writes[] = {
      {0x0a, 0, 0, 0, 2, 0},                    // WRITE(6)
      {0x2a, 0, 0, 0, 0, 0, 0, 0, 2, 0},        // WRITE(10)
      {0xaa, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0},  // WRITE(12)
      write16(0, 2),
      {0x2e, 0, 0, 0, 0, 0, 0, 0, 2, 0},  // WRITE AND VERIFY(10)
      cdb16(0x8e, 0, 2),                  // WRITE AND VERIFY(16)
      cdb16(0x8b, 0, 2),                  // ORWRITE(16)
      cdb16(0x8f, 0, 2, 0x02),            // VERIFY(16), BYTCHK=01b
  };
  for (const Bytes& cdb : writes) {
    for (const size_t bytes : {1u, 200u, 511u, 513u, 1023u}) {
      EXPECT_EQ(sense_of(cdb, bytes), kShortData) << std::hex << int{cdb[0]} << ' ' << bytes;
      EXPECT_TRUE(unchanged()) << std::hex << int{cdb[0]} << ' ' << bytes;
    }
  }
}

TEST_F(ShortDataOutTest, AWriteOfFewerWholeBlocksWritesThem) {
  EXPECT_EQ(sense_of(write16(0, 2), 512), 0u);
  EXPECT_TRUE(backend->all(0, 512, 0xee));
  EXPECT_TRUE(backend->all(512, 512, 0x11));
}

TEST_F(ShortDataOutTest, CommandsThatNeedAllTheirBlocksReportAnInvalidFieldInTheCdb) {
  for (const Bytes& cdb :
       {cdb16(0x93, 0, 2), cdb16(0x89, 0, 1)}) {  // WRITE SAME, COMPARE AND WRITE
    EXPECT_EQ(sense_of(cdb, 200), 0x052400u);
    EXPECT_TRUE(unchanged());
  }
}

TEST_F(ShortDataOutTest, AnIncompleteParameterListIsRefusedWithoutEffect) {
  const Bytes lists[] = {
      parameters(0x42, 0, 8, 24),     // UNMAP
      parameters(0x15, 0x10, 4, 24),  // MODE SELECT(6)
      parameters(0x55, 0x10, 8, 28),  // MODE SELECT(10)
      parameters(0x5f, 0, 8, 24),     // PERSISTENT RESERVE OUT, REGISTER
      parameters(0x83, 0, 13, 44),    // EXTENDED COPY(LID1)
  };
  for (const Bytes& cdb : lists) {
    for (const size_t bytes : {0u, 1u, 20u}) {
      EXPECT_EQ(sense_of(cdb, bytes), kShortData) << std::hex << int{cdb[0]} << ' ' << bytes;
    }
  }
  EXPECT_TRUE(unchanged());
}

}  // namespace
}  // namespace sluice::lun
