#include "nexus/nexus.h"

#include <gtest/gtest.h>

#include "nexus/lun_fixture.h"
#include "scsi/command_table.h"
#include "scsi/report_luns.h"

namespace sluice::lun {
namespace {

using NexusTest = LunTest;

constexpr uint64_t kLun5 = uint64_t{5} << 48;

TEST_F(NexusTest, TheFirstCommandOfANewNexusReportsPowerOn) {
  auto nexus = open_fresh("a");
  EXPECT_EQ(start(*nexus, test_unit_ready()).sense(), 0x062900u);
  EXPECT_EQ(start(*nexus, test_unit_ready()).command.status, scsi::Status::kGood);
}

TEST_F(NexusTest, TheSuccessorOfALostNexusReportsNexusLossAndTheNextSuccessorDoesNot) {
  auto nexus = open("a");
  nexus->close(true, [] {});
  reactors.run();
  auto second = open_fresh("a");
  EXPECT_EQ(start(*second, test_unit_ready()).sense(), 0x062907u);
  second->close(false, [] {});
  reactors.run();
  EXPECT_EQ(start(*open_fresh("a"), test_unit_ready()).sense(), 0x062900u);
}

TEST_F(NexusTest, TheLossOfANexusIsNotReportedToAnotherNexus) {
  auto nexus = open("a");
  nexus->close(true, [] {});
  reactors.run();
  EXPECT_EQ(start(*open_fresh("b"), test_unit_ready()).sense(), 0x062900u);
}

TEST_F(NexusTest, InquiryDoesNotClearAUnitAttention) {
  auto nexus = open_fresh("a");
  EXPECT_EQ(start(*nexus, inquiry()).command.status, scsi::Status::kGood);
  EXPECT_EQ(start(*nexus, test_unit_ready()).sense(), 0x062900u);
}

TEST_F(NexusTest, RequestSenseReturnsAUnitAttentionAsDataAndClearsIt) {
  auto nexus = open_fresh("a");
  Task& task = start(*nexus, request_sense());
  EXPECT_EQ(task.command.status, scsi::Status::kGood);
  const Bytes data = task.answer();
  ASSERT_GE(data.size(), 14u);
  EXPECT_EQ(data[2] & 0x0f, 6);
  EXPECT_EQ(data[12], 0x29);
  EXPECT_EQ(start(*nexus, test_unit_ready()).command.status, scsi::Status::kGood);
  EXPECT_EQ(start(*nexus, request_sense()).answer()[2] & 0x0f, 0);
}

TEST_F(NexusTest, AnUnsupportedCommandReportsAPendingUnitAttentionFirst) {
  auto nexus = open_fresh("a");
  Bytes unknown(6);
  unknown[0] = 0x04;  // FORMAT UNIT
  EXPECT_EQ(start(*nexus, unknown).sense(), 0x062900u);
  EXPECT_EQ(start(*nexus, unknown).sense(), 0x052000u);
}

TEST_F(NexusTest, ALunThatDoesNotExistAnswersInquiryWithNoDevice) {
  auto nexus = open("a");
  Task& task = start(*nexus, inquiry(), {}, kLun5);
  EXPECT_EQ(task.command.status, scsi::Status::kGood);
  EXPECT_EQ(task.answer()[0], 0x7f);
}

TEST_F(NexusTest, ALunThatDoesNotExistAnswersRequestSenseWithNotSupportedAsData) {
  auto nexus = open("a");
  Task& task = start(*nexus, request_sense(), {}, kLun5);
  EXPECT_EQ(task.command.status, scsi::Status::kGood);
  const Bytes data = task.answer();
  EXPECT_EQ(data[2] & 0x0f, 5);
  EXPECT_EQ(data[12], 0x25);
}

TEST_F(NexusTest, ALunThatDoesNotExistAnswersReportLunsWithTheExistingLuns) {
  auto nexus = open("a");
  Task& task = start(*nexus, report_luns(), {}, kLun5);
  EXPECT_EQ(task.command.status, scsi::Status::kGood);
  EXPECT_EQ(load_be32(task.answer().data()), 8u);
}

TEST_F(NexusTest, ALunThatDoesNotExistRefusesOtherCommands) {
  auto nexus = open("a");
  EXPECT_EQ(start(*nexus, test_unit_ready(), {}, kLun5).sense(), 0x052500u);
  EXPECT_EQ(start(*nexus, read16(0, 1), {}, kLun5).sense(), 0x052500u);
  EXPECT_EQ(start(*nexus, write16(0, 1), Bytes(512), kLun5).sense(), 0x052500u);
  Bytes unknown(6);
  unknown[0] = 0x04;
  EXPECT_EQ(start(*nexus, unknown, {}, kLun5).sense(), 0x052500u);
}

TEST_F(NexusTest, FlatAddressingReachesTheSameUnit) {
  auto nexus = open("a");
  EXPECT_EQ(start(*nexus, test_unit_ready(), {}, uint64_t{0x4000} << 48).command.status,
            scsi::Status::kGood);
  // A second level, or a bus other than 0, is nothing.
  EXPECT_EQ(start(*nexus, test_unit_ready(), {}, uint64_t{1} << 32).sense(), 0x052500u);
  EXPECT_EQ(start(*nexus, test_unit_ready(), {}, uint64_t{0x0100} << 48).sense(), 0x052500u);
}

TEST_F(NexusTest, TheWellKnownLunReportsLunsAndItself) {
  auto nexus = open("a");
  const uint64_t lun = scsi::kReportLunsWellKnownLun;
  EXPECT_TRUE(nexus->has_lun(lun));
  EXPECT_EQ(start(*nexus, inquiry(), {}, lun).answer()[0], 0x1e);
  Bytes cdb = report_luns();
  cdb[2] = 0x02;
  EXPECT_EQ(load_be32(start(*nexus, cdb, {}, lun).answer().data()), 16u);
  EXPECT_EQ(start(*nexus, test_unit_ready(), {}, lun).command.status, scsi::Status::kGood);
  EXPECT_EQ(start(*nexus, read16(0, 1), {}, lun).sense(), 0x052000u);
}

TEST_F(NexusTest, LunsAbove255AreReachedByFlatAddressing) {
  target->set_luns({{0, unit}, {300, unit}, {16383, unit}}, reactors);
  auto nexus = open("a");
  for (const uint64_t number : {300u, 16383u}) {
    EXPECT_EQ(start(*nexus, test_unit_ready(), {}, scsi::lun_field(number)).command.status,
              scsi::Status::kGood);
  }
  EXPECT_FALSE(nexus->has_lun(scsi::lun_field(301)));
  EXPECT_EQ(load_be32(start(*nexus, report_luns()).answer().data()), 24u);
}

TEST_F(NexusTest, ANewLunIsServedAndReportedOnce) {
  auto nexus = open("a");
  target->set_luns({{0, unit}, {5, unit}}, reactors);
  reactors.run();
  EXPECT_EQ(start(*nexus, test_unit_ready()).sense(), 0x063f0eu);
  EXPECT_EQ(start(*nexus, test_unit_ready()).command.status, scsi::Status::kGood);
  EXPECT_TRUE(nexus->has_lun(kLun5));
  EXPECT_EQ(start(*nexus, read16(0, 1), {}, kLun5).sense(), 0x063f0eu);
  EXPECT_EQ(start(*nexus, read16(0, 1), {}, kLun5).command.status, scsi::Status::kGood);
}

TEST_F(NexusTest, ReportLunsClearsTheInventoryAttentionOfAllLuns) {
  auto nexus = open("a");
  target->set_luns({{0, unit}, {5, unit}}, reactors);
  reactors.run();
  start(*nexus, report_luns());
  EXPECT_EQ(start(*nexus, test_unit_ready()).command.status, scsi::Status::kGood);
  EXPECT_EQ(start(*nexus, test_unit_ready(), {}, kLun5).command.status, scsi::Status::kGood);
}

TEST_F(NexusTest, AnUnchangedInventoryIsNotReported) {
  auto nexus = open("a");
  target->set_luns({{0, unit}}, reactors);
  reactors.run();
  EXPECT_EQ(start(*nexus, test_unit_ready()).command.status, scsi::Status::kGood);
}

TEST_F(NexusTest, ARemovedLunCompletesRunningCommandsAndRefusesCommandsWaitingForData) {
  auto nexus = open("a");
  target->set_luns({{0, unit}, {5, unit}}, reactors);
  reactors.run();
  start(*nexus, report_luns());
  backend->holds = true;
  Task& running = start(*nexus, read16(0, 1), {}, kLun5);
  Task& waiting = make(write16(8, 1), Bytes(512), kLun5);
  ASSERT_TRUE(begin(*nexus, waiting));
  target->set_luns({{0, unit}}, reactors);
  reactors.run();
  EXPECT_FALSE(nexus->has_lun(kLun5));
  send_data(*nexus, waiting);
  EXPECT_EQ(waiting.sense(), 0x052500u);
  EXPECT_FALSE(running.done());
  backend->release_all();
  EXPECT_TRUE(running.done());
  EXPECT_EQ(running.command.status, scsi::Status::kGood);
  reactors.run();
  EXPECT_EQ(start(*nexus, test_unit_ready(), {}, kLun5).sense(), 0x052500u);
}

TEST_F(NexusTest, PeekReturnsAUnitAttentionWithoutClearingIt) {
  auto nexus = open_fresh("a");
  UnitAttention ua;
  EXPECT_TRUE(nexus->peek_unit_attention(0, &ua));
  EXPECT_EQ(ua.asc, 0x29);
  EXPECT_EQ(start(*nexus, test_unit_ready()).sense(), 0x062900u);
  EXPECT_FALSE(nexus->peek_unit_attention(0, &ua));
}

TEST_F(NexusTest, AcaAndReservedAttributesAreRefused) {
  auto nexus = open("a");
  for (const int attribute : {4, 5, 7}) {
    Task& task = make(test_unit_ready());
    task.command.attribute = static_cast<TaskAttribute>(attribute);
    EXPECT_FALSE(begin(*nexus, task));
    EXPECT_EQ(task.sense(), 0x054900u);
  }
}

// Whatever its fields say, a command is answered, once.
TEST_F(NexusTest, EveryCommandOfTheTableIsAnsweredOnAnOrdinaryUnit) {
  auto nexus = open("a");
  for (const scsi::CommandInfo& info : scsi::command_table()) {
    for (const uint8_t fill : {0x00, 0xff}) {
      Bytes cdb(16);
      for (size_t i = 1; i < 16; ++i) cdb[i] = info.usage[i] & fill;
      cdb[0] = info.opcode;
      if (info.service_action != scsi::kNoServiceAction) {
        cdb[1] = static_cast<uint8_t>((cdb[1] & 0xe0) | info.service_action);
      }
      Task& task = start(*nexus, cdb, Bytes(65536));
      reactors.run();
      EXPECT_TRUE(task.done()) << info.name << " with fields of " << int{fill};
      EXPECT_LE(task.answer().size(), size_t{1} << 24) << info.name;
    }
  }
}

TEST_F(NexusTest, AClosedNexusAbortsNewCommands) {
  auto nexus = open("a");
  bool closed = false;
  nexus->close(false, [&closed] { closed = true; });
  EXPECT_FALSE(closed);
  reactors.run();
  EXPECT_TRUE(closed);
  Task& task = start(*nexus, test_unit_ready());
  EXPECT_TRUE(task.done());
  EXPECT_TRUE(task.command.aborted());
}

TEST_F(NexusTest, ClosingANexusAbortsItsCommandsAndWaitsForTheBackend) {
  auto nexus = open("a");
  backend->holds = true;
  Task& running = start(*nexus, read16(0, 1));
  Task& waiting = make(write16(8, 1), Bytes(512));
  ASSERT_TRUE(begin(*nexus, waiting));
  bool closed = false;
  nexus->close(true, [&closed] { closed = true; });
  reactors.run();
  EXPECT_TRUE(waiting.done());
  EXPECT_TRUE(waiting.command.aborted());
  EXPECT_FALSE(running.done());
  EXPECT_FALSE(closed);
  backend->release_all();
  EXPECT_TRUE(running.command.aborted());
  reactors.run();
  EXPECT_TRUE(closed);
}

}  // namespace
}  // namespace sluice::lun
