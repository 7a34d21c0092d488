#include "commands/gate.h"

#include <gtest/gtest.h>

#include <mutex>

#include "nexus/lun_fixture.h"
#include "unit/reservations/reservations.h"

namespace sluice::lun {
namespace {

using GateTest = LunTest;
using scsi::Status;

void reserve(Unit& unit, const NexusId& id) {
  const std::lock_guard lock(unit.mutex());
  EXPECT_TRUE(unit.reservations().reserve6(id));
  unit.reservations_changed();
}

TEST_F(GateTest, AReservationOfAnotherNexusConflicts) {
  auto a = open("a");
  auto b = open("b");
  reserve(*unit, a->id());
  EXPECT_EQ(start(*b, read16(0, 1)).command.status, Status::kReservationConflict);
  EXPECT_EQ(start(*b, write16(0, 1), Bytes(512)).command.status, Status::kReservationConflict);
  EXPECT_EQ(start(*b, inquiry()).command.status, Status::kGood);
  EXPECT_EQ(start(*a, read16(0, 1)).command.status, Status::kGood);
}

// SBC-4 §4.17
TEST_F(GateTest, AReservationPermitsOtherNexusesToStartTheUnitButNotToStopIt) {
  auto a = open("a");
  auto b = open("b");
  reserve(*unit, a->id());
  EXPECT_EQ(start(*b, Bytes{0x1b, 0, 0, 0, 0, 0}).command.status, Status::kReservationConflict);
  EXPECT_EQ(start(*a, Bytes{0x1b, 0, 0, 0, 0, 0}).command.status, Status::kGood);
  EXPECT_EQ(start(*b, Bytes{0x1b, 0, 0, 0, 1, 0}).command.status, Status::kGood);
  EXPECT_FALSE(unit->stopped());
}

TEST_F(GateTest, AReservationConflictIsReportedBeforeDataIsRequested) {
  auto a = open("a");
  auto b = open("b");
  reserve(*unit, a->id());
  Task& task = make(write16(0, 1), Bytes(512));
  EXPECT_FALSE(begin(*b, task));
  EXPECT_EQ(task.command.status, Status::kReservationConflict);
}

TEST_F(GateTest, AReservationMadeWhileDataArrivesStopsTheWrite) {
  auto a = open("a");
  auto b = open("b");
  Task& task = make(write16(0, 1), Bytes(512, 0xab));
  ASSERT_TRUE(begin(*b, task));
  reserve(*unit, a->id());
  send_data(*b, task);
  EXPECT_EQ(task.command.status, Status::kReservationConflict);
  EXPECT_TRUE(backend->submitted.empty());
}

TEST_F(GateTest, AReservationMadeWhileAWriteWaitsForItsRangeStopsTheWrite) {
  auto a = open("a");
  auto b = open("b");
  backend->holds = true;
  start(*a, write16(0, 1), Bytes(512, 1));
  Task& behind = start(*b, write16(0, 1), Bytes(512, 2));
  EXPECT_FALSE(behind.done());
  reserve(*unit, a->id());
  backend->release_all();
  EXPECT_EQ(behind.command.status, Status::kReservationConflict);
  EXPECT_EQ(backend->data[0], 1);
}

TEST_F(GateTest, AUnitAttentionPrecedesAReservationConflict) {
  auto a = open("a");
  auto b = open_fresh("b");
  reserve(*unit, a->id());
  EXPECT_EQ(start(*b, read16(0, 1)).sense(), 0x062900u);
  EXPECT_EQ(start(*b, read16(0, 1)).command.status, Status::kReservationConflict);
}

TEST_F(GateTest, AReservationConflictPrecedesAnLbaOutOfRange) {
  auto a = open("a");
  auto b = open("b");
  reserve(*unit, a->id());
  EXPECT_EQ(start(*b, read16(kBlocks, 1)).command.status, Status::kReservationConflict);
}

TEST_F(GateTest, TheEndOfTheNexusReleasesItsReserve6) {
  auto a = open("a");
  auto b = open("b");
  reserve(*unit, a->id());
  a->close(true, [] {});
  reactors.run();
  EXPECT_EQ(start(*b, read16(0, 1)).command.status, Status::kGood);
  EXPECT_EQ(unit->gate(), 0u);
}

TEST_F(GateTest, AWriteProtectedUnitReadsButDoesNotWrite) {
  auto a = open("a");
  unit->set_mode({.descriptor_sense = false, .software_write_protect = true});
  EXPECT_EQ(start(*a, read16(0, 1)).command.status, Status::kGood);
  EXPECT_EQ(start(*a, write16(0, 1), Bytes(512)).sense(), 0x072702u);
  EXPECT_EQ(start(*a, cdb16(0x93, 0, 1), Bytes(512)).sense(), 0x072702u);  // WRITE SAME
  EXPECT_TRUE(unit->read_only());
}

TEST_F(GateTest, AUnitWithoutItsMediumIsNotReadyUntilTheMediumReturns) {
  auto a = open("a");
  backend->gone = true;
  unit->poll_health();
  EXPECT_EQ(start(*a, test_unit_ready()).sense(), 0x020400u);
  EXPECT_EQ(start(*a, read16(0, 1)).sense(), 0x020400u);
  EXPECT_EQ(start(*a, inquiry()).command.status, Status::kGood);
  EXPECT_EQ(start(*a, request_sense()).answer()[2] & 0x0f, 2);
  backend->gone = false;
  unit->poll_health();
  EXPECT_EQ(start(*a, read16(0, 1)).command.status, Status::kGood);
}

TEST_F(GateTest, AMediumThatGrewExternallyIsReportedAtTheNextHealthPoll) {
  auto a = open("a");
  const uint64_t before = unit->blocks();
  backend->data.resize(2 * backend->data.size());
  backend->allocated.resize(backend->data.size() / 4096 + 1);
  EXPECT_EQ(start(*a, read16(before, 1)).sense(), 0x052100u);
  unit->poll_health();
  EXPECT_EQ(start(*a, test_unit_ready()).sense(), 0x062a09u);
  EXPECT_EQ(start(*a, read16(before, 1)).command.status, Status::kGood);
  unit->poll_health();
  EXPECT_EQ(start(*a, test_unit_ready()).command.status, Status::kGood);
}

TEST_F(GateTest, AVanishedDeviceMakesTheUnitNotReady) {
  auto a = open("a");
  backend->fail_with = -ENODEV;
  EXPECT_EQ(start(*a, read16(0, 1)).sense(), 0x020400u);
  backend->fail_with = 0;
  EXPECT_EQ(start(*a, test_unit_ready()).sense(), 0x020400u);
  unit->poll_health();
  EXPECT_EQ(start(*a, test_unit_ready()).command.status, Status::kGood);
}

// SPC-5 §6.42, SEND DIAGNOSTIC.
TEST_F(GateTest, TheDefaultSelfTestSucceedsOnAHealthyUnitAndOtherSelfTestsAreRefused) {
  auto a = open("a");
  EXPECT_EQ(start(*a, Bytes{0x1d, 0x04, 0, 0, 0, 0}).command.status, Status::kGood);
  EXPECT_EQ(backend->submitted.size(), 2u) << "the first and the last block";
  EXPECT_EQ(start(*a, Bytes{0x1d, 0x17, 0, 0, 0, 0}).command.status, Status::kGood);
  EXPECT_EQ(start(*a, Bytes{0x1d, 0x00, 0, 0, 0, 0}).command.status, Status::kGood);
  for (unsigned code = 1; code < 8; ++code) {
    const Bytes cdb = {0x1d, static_cast<uint8_t>(code << 5), 0, 0, 0, 0};
    EXPECT_EQ(start(*a, cdb).sense(), 0x052400u) << code;
  }
  EXPECT_EQ(start(*a, Bytes{0x1d, 0x10, 0, 0, 8, 0}).sense(), 0x052400u) << "a diagnostic page";
  backend->fail_with = -EIO;
  EXPECT_EQ(start(*a, Bytes{0x1d, 0x04, 0, 0, 0, 0}).sense(), 0x043e03u);
  backend->fail_with = -ENODEV;
  EXPECT_EQ(start(*a, Bytes{0x1d, 0x04, 0, 0, 0, 0}).sense(), 0x020400u);
}

TEST_F(GateTest, AStoppedUnitReportsInitializingCommandRequired) {
  auto a = open("a");
  Bytes stop = {0x1b, 0, 0, 0, 0, 0};
  EXPECT_EQ(start(*a, stop).command.status, Status::kGood);
  ASSERT_EQ(backend->submitted.size(), 1u);
  EXPECT_EQ(backend->submitted[0].op, backend::Op::kFlush);
  EXPECT_EQ(start(*a, read16(0, 1)).sense(), 0x020402u);
  Bytes go = {0x1b, 0, 0, 0, 1, 0};
  EXPECT_EQ(start(*a, go).command.status, Status::kGood);
  EXPECT_EQ(start(*a, read16(0, 1)).command.status, Status::kGood);
}

TEST_F(GateTest, AUnitThatIsNoLongerExportedReportsLogicalUnitNotSupported) {
  auto a = open("a");
  unit->raise_gate(Unit::kRemoved);
  EXPECT_EQ(start(*a, read16(0, 1)).sense(), 0x052500u);
}

TEST_F(GateTest, AResizeIsReportedToEveryNexusOnce) {
  auto a = open("a");
  auto b = open("b", 1);
  EXPECT_TRUE(unit->resize(2 * kBlocks * block).ok());
  EXPECT_EQ(start(*a, test_unit_ready()).sense(), 0x062a09u);
  EXPECT_EQ(start(*b, test_unit_ready()).sense(), 0x062a09u);
  for (Nexus* nexus : {a.get(), b.get()}) {
    EXPECT_EQ(start(*nexus, read16(kBlocks, 1)).command.status, Status::kGood);
  }
}

TEST_F(GateTest, AResizeThatShrinksOrSplitsABlockIsRefused) {
  auto a = open("a");
  EXPECT_FALSE(unit->resize(block).ok());
  EXPECT_FALSE(unit->resize(4 * kBlocks * block + 1).ok());
  EXPECT_EQ(start(*a, test_unit_ready()).command.status, Status::kGood);
}

TEST_F(GateTest, TheSameAttentionIsPendingOnce) {
  auto a = open("a");
  for (int i = 0; i < 100; ++i) unit->attached().raise({0x2a, 0x09}, nullptr);
  EXPECT_EQ(start(*a, test_unit_ready()).sense(), 0x062a09u);
  EXPECT_EQ(start(*a, test_unit_ready()).command.status, Status::kGood);
}

TEST_F(GateTest, TooManyAttentionsAreReplacedByPowerOn) {
  auto a = open("a");
  for (uint8_t i = 0; i <= limits::kMaxUnitAttentions; ++i) {
    unit->attached().raise({0x80, i}, nullptr);
  }
  EXPECT_EQ(start(*a, test_unit_ready()).sense(), 0x062900u);
}

TEST_F(GateTest, ModeSelectIsReportedToOtherNexusesAndChangesTheSenseFormat) {
  auto a = open("a");
  auto b = open("b");
  // MODE SELECT(6), PF; header 4 bytes, control page with D_SENSE and what can't be changed.
  Bytes page = start(*a, Bytes{0x1a, 0x08, 0x0a, 0, 252, 0}).answer();
  ASSERT_GE(page.size(), 16u);
  page[0] = 0;
  page[2] = 0;
  page[4 + 2] |= 0x04;
  Bytes cdb = {0x15, 0x10, 0, 0, static_cast<uint8_t>(page.size()), 0};
  Task& select = start(*a, cdb, page);
  EXPECT_EQ(select.command.status, Status::kGood) << std::hex << select.sense();
  EXPECT_TRUE(unit->descriptor_sense());
  Task& told = start(*b, test_unit_ready());
  EXPECT_EQ(told.command.sense[0], 0x72);
  EXPECT_EQ(told.command.sense[1], 0x06);
  EXPECT_EQ(told.command.sense[2], 0x2a);
  EXPECT_EQ(told.command.sense[3], 0x01);
  EXPECT_EQ(start(*a, test_unit_ready()).command.status, Status::kGood);
}

}  // namespace
}  // namespace sluice::lun
