// Commands that a SCSI device behind the unit answers, and its sense data.
#include <algorithm>
#include <cerrno>

#include "base/limits.h"
#include "nexus/lun_fixture.h"

namespace sluice::lun {
namespace {

constexpr uint32_t kUnknownOpcode = 0x052000;
constexpr uint32_t kInvalidField = 0x052400;

Bytes log_sense(uint8_t page, uint16_t room) {
  Bytes cdb(10);
  cdb[0] = 0x4d;
  cdb[2] = static_cast<uint8_t>(0x40 | page);
  put_be(cdb, 7, 2, room);
  return cdb;
}

Bytes read_defects(uint16_t room) {
  Bytes cdb = {0x37, 0, 0x18, 0, 0, 0, 0, 0, 0, 0};
  put_be(cdb, 7, 2, room);
  return cdb;
}

class PlainUnitTest : public LunTest {};

class PassThroughTest : public LunTest {
 protected:
  void prepare_backend(TestBackend& made) override {
    made.information.takes_cdbs = true;
    made.cdb_data = {0x0d, 0, 0, 4, 1, 2, 3, 4};
  }
};

TEST_F(PassThroughTest, ACommandIsPassedUnchangedAndTheAnswerHasTheDevicesLength) {
  auto nexus = open("a");
  Task& task = start(*nexus, log_sense(0x0d, 252));
  ASSERT_TRUE(task.done());
  EXPECT_EQ(task.command.status, scsi::Status::kGood);
  EXPECT_EQ(task.answer(), backend->cdb_data);
  EXPECT_EQ(task.command.data_in_size, backend->cdb_data.size());
  Bytes sent(backend->last_cdb.begin(), backend->last_cdb.begin() + 10);
  EXPECT_EQ(sent, log_sense(0x0d, 252));
  EXPECT_EQ(start(*nexus, read_defects(4)).answer(), (Bytes{0x0d, 0, 0, 4}));
}

TEST_F(PassThroughTest, OnlyCommandsOfTheTableReachTheDevice) {
  auto nexus = open("a");
  for (uint8_t opcode : {0x04, 0x07, 0x3b, 0x3f, 0x48, 0x4c, 0x7f, 0x85, 0xa1, 0xa2, 0xb5}) {
    Bytes cdb(16);
    cdb[0] = opcode;
    EXPECT_EQ(start(*nexus, cdb).sense(), kUnknownOpcode) << unsigned{opcode};
  }
  // READ BUFFER of vendor specific data and of error history; more than there is room for.
  Bytes buffer(10);
  buffer[0] = 0x3c;
  for (uint8_t mode : {0x00, 0x01, 0x0a, 0x1c}) {
    buffer[1] = mode;
    EXPECT_EQ(start(*nexus, buffer).sense(), kInvalidField) << unsigned{mode};
  }
  buffer[1] = 0x02;
  put_be(buffer, 6, 3, limits::kMaxPassedData + 1);
  EXPECT_EQ(start(*nexus, buffer).sense(), kInvalidField);
  EXPECT_TRUE(backend->submitted.empty());
}

TEST_F(PassThroughTest, ReservationsOfOtherNexusesApplyToPassedCommands) {
  auto a = open("a");
  auto b = open("b");
  EXPECT_EQ(start(*a, {0x16, 0, 0, 0, 0, 0}).command.status, scsi::Status::kGood);
  EXPECT_EQ(start(*b, read_defects(8)).command.status, scsi::Status::kReservationConflict);
  EXPECT_TRUE(std::none_of(backend->submitted.begin(), backend->submitted.end(),
                           [](const auto& io) { return io.op == backend::Op::kCdb; }));
  EXPECT_EQ(start(*a, read_defects(8)).command.status, scsi::Status::kGood);
}

TEST_F(PassThroughTest, TheSenseDataOfTheDeviceIsReturnedUnchanged) {
  auto nexus = open("a");
  backend->fail_with = -EIO;
  backend->answer.status = 0x02;
  const Bytes sense = {0xf0, 0, 3, 0, 0, 0x12, 0x34, 10, 9, 8, 7, 6, 0x11, 0x01, 0, 0x80, 0, 5};
  std::copy(sense.begin(), sense.end(), backend->answer.sense.begin());
  backend->answer.sense_size = static_cast<uint8_t>(sense.size());
  for (const Bytes& cdb : {read16(0, 8), read_defects(8)}) {
    const Task& task = start(*nexus, cdb);
    EXPECT_EQ(task.command.status, scsi::Status::kCheckCondition);
    EXPECT_EQ(Bytes(&task.command.sense[0], &task.command.sense[task.command.sense_size]), sense);
    EXPECT_TRUE(task.answer().empty());
  }
  backend->answer = {};
  backend->answer.status = 0x18;
  EXPECT_EQ(start(*nexus, read16(0, 8)).command.status, scsi::Status::kReservationConflict);
  // The sense data of an earlier command must not appear in a later one.
  backend->answer.status = 0;
  EXPECT_EQ(start(*nexus, read16(0, 8)).sense(), 0x031100u);
}

TEST_F(PlainUnitTest, AUnitWithoutPassThroughRefusesPassThroughCommands) {
  auto nexus = open("a");
  EXPECT_EQ(start(*nexus, read_defects(8)).sense(), kUnknownOpcode);
  EXPECT_EQ(start(*nexus, log_sense(0x0d, 252)).sense(), kInvalidField) << "its own pages";
  Bytes status(16);
  status[0] = 0x9e;
  status[1] = 0x17;
  EXPECT_EQ(start(*nexus, status).sense(), kInvalidField) << "READ CAPACITY(16) is another";
  EXPECT_TRUE(backend->submitted.empty());
}

}  // namespace
}  // namespace sluice::lun
