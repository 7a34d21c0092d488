// A LUN that is read-only in its target (Target::LunEntry::read_only), over a unit that can be
// written.
#include <gtest/gtest.h>

#include "lun/lun_fixture.h"

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

TEST_F(ReadOnlyLunTest, RefusesWritesAnswersReadsAndSaysSo) {
  make_read_only(true);
  auto nexus = open("a");
  EXPECT_EQ(written(*nexus), 0x072700u);
  Bytes unmap(10);
  unmap[0] = 0x42;
  unmap[8] = 24;
  EXPECT_EQ(start(*nexus, unmap, Bytes(24)).sense(), 0x072700u);
  EXPECT_TRUE(backend->all(0, 512, backend->data[0])) << "nothing was written";
  EXPECT_EQ(start(*nexus, read16(0, 1)).command.status, scsi::Status::kGood);
  EXPECT_EQ(device_specific(*nexus) & kWriteProtect, kWriteProtect);
}

TEST_F(ReadOnlyLunTest, RefusesWhatOthersOfTheVolumeWouldNotice) {
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

TEST_F(ReadOnlyLunTest, AChangeHoldsForSessionsThatAreThereAndIsToldThem) {
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
