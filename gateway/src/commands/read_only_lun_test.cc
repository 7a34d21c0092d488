// A LUN that is read-only in its target (Target::LunEntry::read_only), over a unit that can be
// written.
#include <gtest/gtest.h>

#include "nexus/lun_fixture.h"

namespace sluice::lun {
namespace {

constexpr uint8_t kWriteProtect = 0x80;  // device-specific parameter, SBC-4 §6.5.1

class ReadOnlyLunTest : public LunTest {
 protected:
  void make_read_only(bool yes) {
    target->set_luns({{0, unit, yes}}, reactors);
    reactors.run();
  }
  uint8_t device_specific(Nexus& nexus) {
    return start(nexus, Bytes{0x1a, 0, 0x3f, 0, 4, 0}).answer().at(2);
  }
  uint32_t written(Nexus& nexus) { return start(nexus, write16(0, 1), Bytes(512, 7)).sense(); }
};

TEST_F(ReadOnlyLunTest, RefusesWritesAnswersReadsAndReportsWriteProtection) {
  make_read_only(true);
  auto nexus = open("a");
  EXPECT_EQ(written(*nexus), 0x072700u);
  Bytes unmap(10);
  unmap[0] = 0x42;
  unmap[8] = 24;
  EXPECT_EQ(start(*nexus, unmap, Bytes(24)).sense(), 0x072700u);
  EXPECT_TRUE(backend->submitted.empty()) << "nothing was written or unmapped";
  EXPECT_EQ(start(*nexus, read16(0, 1)).command.status, scsi::Status::kGood);
  EXPECT_EQ(device_specific(*nexus) & kWriteProtect, kWriteProtect);
}

TEST_F(ReadOnlyLunTest, RefusesCommandsThatAffectOtherHostsOfTheVolume) {
  make_read_only(true);
  auto nexus = open("a");
  Bytes reserve(10);
  reserve[0] = 0x5f;
  reserve[1] = 1;
  reserve[2] = 1;
  reserve[8] = 24;
  EXPECT_EQ(start(*nexus, reserve, Bytes(24)).sense(), 0x072700u);
  EXPECT_EQ(start(*nexus, Bytes{0x16, 0, 0, 0, 0, 0}).sense(), 0x072700u);
  EXPECT_EQ(start(*nexus, Bytes{0x15, 0x10, 0, 0, 24, 0}, Bytes(24)).sense(), 0x072700u);
  EXPECT_EQ(start(*nexus, Bytes{0x1b, 0, 0, 0, 0, 0}).sense(), 0x072700u) << "to stop it";
  Bytes unknown(16);
  unknown[0] = 0xc1;
  EXPECT_EQ(start(*nexus, unknown).sense(), 0x052000u);
}

// read-only=on of the backend.
class ReadOnlyBackendTest : public ReadOnlyLunTest {
 protected:
  void prepare_backend(TestBackend& b) override { b.information.read_only = true; }
};

TEST_F(ReadOnlyBackendTest, RefusesTheCommandsThatAReadOnlyHostIsRefused) {
  auto nexus = open("a");
  auto other = open("b");
  EXPECT_EQ(written(*nexus), 0x072700u);
  for (const uint8_t action : {0x00, 0x01, 0x03, 0x04, 0x05, 0x06}) {
    Bytes reserve(10);
    reserve[0] = 0x5f;
    reserve[1] = action;
    reserve[2] = 1;
    reserve[8] = 24;
    Bytes list(24);
    list[15] = 1;  // SERVICE ACTION RESERVATION KEY
    EXPECT_EQ(start(*nexus, reserve, list).sense(), 0x072700u) << int{action};
  }
  EXPECT_EQ(start(*nexus, Bytes{0x16, 0, 0, 0, 0, 0}).sense(), 0x072700u) << "RESERVE(6)";
  EXPECT_EQ(start(*nexus, Bytes{0x15, 0x10, 0, 0, 24, 0}, Bytes(24)).sense(), 0x072700u);
  EXPECT_EQ(start(*nexus, Bytes{0x1b, 0, 0, 0, 0, 0}).sense(), 0x072700u) << "to stop it";
  Task& read = start(*other, read16(0, 1));
  EXPECT_EQ(read.command.status, scsi::Status::kGood) << std::hex << read.sense();
}

TEST_F(ReadOnlyLunTest, SoftwareWriteProtectHasItsOwnSense) {
  auto nexus = open("a");
  // MODE SENSE(6) with DBD: header, control mode page (0Ah). MODE SELECT(6) sends it back with SWP.
  Bytes list = start(*nexus, Bytes{0x1a, 0x08, 0x0a, 0, 16, 0}).answer();
  ASSERT_EQ(list.size(), 16u);
  list[0] = list[2] = 0;
  list[4] &= 0x3f;  // PS
  list[4 + 4] |= 0x08;
  Task& select = start(*nexus, Bytes{0x15, 0x10, 0, 0, 16, 0}, list);
  ASSERT_EQ(select.sense(), 0u);
  EXPECT_EQ(written(*nexus), 0x072702u) << "LOGICAL UNIT SOFTWARE WRITE PROTECTED";
  list[4 + 4] &= 0xf7;
  EXPECT_EQ(start(*nexus, Bytes{0x15, 0x10, 0, 0, 16, 0}, list).sense(), 0u);
  EXPECT_EQ(written(*nexus), 0u);
}

TEST_F(ReadOnlyLunTest, AnotherTargetOfTheSameVolumeWrites) {
  make_read_only(true);
  auto reader = open("a");
  target = std::make_shared<Target>("iqn.2026-11.dev.sluice:writable", "", 1);
  target->set_luns({{0, unit}}, reactors);
  auto writer = open("b");
  EXPECT_EQ(written(*writer), 0u);
  EXPECT_EQ(device_specific(*writer) & kWriteProtect, 0);
  EXPECT_EQ(written(*reader), 0x072700u);
}

TEST_F(ReadOnlyLunTest, AReadOnlyChangeAppliesToExistingSessionsAndIsReportedToThem) {
  auto nexus = open("a");
  EXPECT_EQ(written(*nexus), 0u);
  for (const bool yes : {true, false}) {
    make_read_only(yes);
    EXPECT_EQ(start(*nexus, read16(0, 1)).sense(), 0x062a01u) << "MODE PARAMETERS CHANGED";
    EXPECT_EQ(written(*nexus), yes ? 0x072700u : 0u);
    EXPECT_EQ(device_specific(*nexus) & kWriteProtect, yes ? kWriteProtect : 0);
  }
  make_read_only(false);
  EXPECT_EQ(start(*nexus, read16(0, 1)).sense(), 0u) << "nothing has changed";
}

}  // namespace
}  // namespace sluice::lun
