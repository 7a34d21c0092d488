// VPD page B2h (SBC-4 §6.6.7) and READ CAPACITY (16): each bit about provisioning holds for the
// commands that it is about, whatever the medium supports.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "nexus/lun_fixture.h"

namespace sluice::lun {
namespace {

constexpr uint32_t kInvalidCommand = 0x052000;
constexpr uint32_t kInvalidFieldInCdb = 0x052400;
constexpr uint8_t kUnmap = 0x08, kAnchor = 0x10;  // flags of WRITE SAME

// What a medium can do.
struct Medium {
  std::string name;
  bool discards, zeroes, thin;
};

class ReportedProvisioning : public LunTest, public testing::WithParamInterface<Medium> {
 protected:
  void prepare_backend(TestBackend& made) override {
    made.information.discard_granularity = GetParam().discards ? 512 : 0;
    made.information.discard_zeroes = GetParam().zeroes;
    made.information.thin = GetParam().thin;
  }
  void SetUp() override {
    LunTest::SetUp();
    nexus = open("a");
    page = start(*nexus, {0x12, 1, 0xb2, 0, 64, 0}).answer();
    ASSERT_GE(page.size(), 8u);
    const Bytes capacity =
        start(*nexus, {0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0}).answer();
    ASSERT_EQ(capacity.size(), 32u);
    thin_bits = capacity[14];
  }
  bool bit(uint8_t mask) const { return (page[5] & mask) != 0; }

  Task& unmap(uint64_t lba, uint8_t flags = 0) {
    Bytes list(24);
    put_be(list, 0, 2, 22);
    put_be(list, 2, 2, 16);
    put_be(list, 8, 8, lba);
    put_be(list, 16, 4, 8);
    return start(*nexus, {0x42, flags, 0, 0, 0, 0, 0, 0, 24, 0}, std::move(list));
  }
  Task& same16(uint64_t lba, uint8_t flags) {
    return start(*nexus, cdb16(0x93, lba, 8, flags), Bytes(512));
  }
  Task& same10(uint8_t lba, uint8_t flags) {
    return start(*nexus, {0x41, flags, 0, 0, 0, lba, 0, 0, 8, 0}, Bytes(512));
  }
  void fill(uint64_t lba) {
    ASSERT_EQ(start(*nexus, write16(lba, 8), Bytes(4096, 0xa5)).command.status,
              scsi::Status::kGood);
  }
  bool zero(uint64_t lba) { return start(*nexus, read16(lba, 8)).answer() == Bytes(4096); }

  std::shared_ptr<Nexus> nexus;
  Bytes page;
  uint8_t thin_bits = 0;  // LBPME and LBPRZ of READ CAPACITY (16)
};

TEST_P(ReportedProvisioning, IsWhatTheCommandsDo) {
  const struct {
    const char* name;
    uint8_t mask;
    uint32_t otherwise;  // sense where the bit is 0
    std::function<Task&(uint8_t lba)> command;
  } commands[] = {
      {"LBPU", 0x80, kInvalidCommand, [this](uint8_t lba) -> Task& { return unmap(lba); }},
      {"LBPWS", 0x40, kInvalidFieldInCdb,
       [this](uint8_t lba) -> Task& { return same16(lba, kUnmap); }},
      {"LBPWS10", 0x20, kInvalidFieldInCdb,
       [this](uint8_t lba) -> Task& { return same10(lba, kUnmap); }},
  };
  uint8_t lba = 0;
  for (const auto& c : commands) {
    SCOPED_TRACE(c.name);
    lba += 8;
    fill(lba);
    Task& task = c.command(lba);
    EXPECT_EQ(bit(c.mask), GetParam().discards);
    EXPECT_EQ(task.sense(), bit(c.mask) ? 0 : c.otherwise);
    // LBPRZ 001b: unmapped blocks read as zeros. A block that was not unmapped keeps its data.
    const bool zeroes = (page[5] & 0x1c) != 0;
    if (!bit(c.mask)) {
      EXPECT_FALSE(zero(lba));
    } else if (zeroes) {
      EXPECT_TRUE(zero(lba));
    }
  }
}

TEST_P(ReportedProvisioning, WithoutAncSupNoBlockIsAnchored) {
  ASSERT_FALSE(bit(0x02));
  const uint32_t refused = GetParam().discards ? kInvalidFieldInCdb : kInvalidCommand;
  EXPECT_EQ(unmap(8, 0x01).sense(), refused);
  EXPECT_EQ(same16(8, kUnmap | kAnchor).sense(), kInvalidFieldInCdb);
  EXPECT_EQ(same10(8, kUnmap | kAnchor).sense(), kInvalidFieldInCdb);
}

TEST_P(ReportedProvisioning, IsTheSameInReadCapacity) {
  const uint8_t type = page[6] & 0x07;
  EXPECT_EQ(type, GetParam().thin ? 2 : 0) << "PROVISIONING TYPE: thin, or not reported";
  EXPECT_EQ((thin_bits & 0x80) != 0, GetParam().thin) << "LBPME";
  EXPECT_EQ((thin_bits & 0x40) != 0, (page[5] & 0x1c) != 0) << "LBPRZ";
  // The threshold exponent has a meaning only if thresholds can be set: no page can set them.
  EXPECT_FALSE(page[4] != 0 && type == 0);
}

INSTANTIATE_TEST_SUITE_P(Media, ReportedProvisioning,
                         testing::Values(Medium{"Thin", true, true, true},
                                         Medium{"ThinWithoutZeroes", true, false, true},
                                         Medium{"Full", false, false, false}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace sluice::lun
