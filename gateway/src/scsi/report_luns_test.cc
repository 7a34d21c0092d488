#include "scsi/report_luns.h"

#include <gtest/gtest.h>

#include "scsi/expected_bytes.h"
#include "scsi/refusal_text.h"

namespace sluice::scsi {
namespace {

std::vector<uint8_t> report(uint8_t select) {
  const uint64_t numbers[] = {0, 255, 256, 16383};
  std::vector<uint8_t> cdb = hex("a0 00 00 00 00 00 00 00 10 00 00 00");
  cdb[2] = select;
  return built([&](MutableBytes out) {
    const auto size = build_report_luns(cdb, numbers, out);
    EXPECT_TRUE(size.ok());
    return size ? *size : 0;
  });
}

const auto kUnits = hex("00 00 00*6  00 ff 00*6  41 00 00*6  7f ff 00*6");
const auto kWellKnown = hex("c1 01 00*6");

TEST(ReportLuns, SelectReportDeterminesTheListedLuns) {
  EXPECT_EQ(report(0x00), hex("00000020 00*4") + kUnits);
  EXPECT_EQ(report(0x01), hex("00000008 00*4") + kWellKnown);
  EXPECT_EQ(report(0x02), hex("00000028 00*4") + kUnits + kWellKnown);
  EXPECT_EQ(report(0x10), hex("00000000 00*4"));
  EXPECT_EQ(report(0x11), hex("00000020 00*4") + kUnits);
  EXPECT_EQ(report(0x12), hex("00000000 00*4"));
}

TEST(ReportLuns, RefusesOtherSelectionsAndTooShortAnAllocation) {
  std::vector<uint8_t> out(64);
  EXPECT_EQ(refusal_of(build_report_luns(hex("a0 00 03 00 00 00 00 00 10 00"), {}, out)),
            "24/00 cdb 2.7");
  EXPECT_EQ(refusal_of(build_report_luns(hex("a0 00 00 00 00 00 00 00 00 0f"), {}, out)),
            "24/00 cdb 6.7");
}

TEST(LunField, NumbersAreDecodedAsTheyWereEncoded) {
  for (uint64_t number = 0; number <= kMaxLunNumber; ++number) {
    uint64_t back = ~uint64_t{0};
    ASSERT_TRUE(lun_number(lun_field(number), &back));
    ASSERT_EQ(back, number);
  }
}

TEST(LunField, BothAddressingMethodsNameTheSameLowNumber) {
  uint64_t number = 0;
  EXPECT_TRUE(lun_number(0x4005'0000'0000'0000, &number));
  EXPECT_EQ(number, 5);
}

TEST(LunField, OtherFormatsAreRefused) {
  uint64_t number = 0;
  EXPECT_FALSE(lun_number(kReportLunsWellKnownLun, &number));
  EXPECT_FALSE(lun_number(0x0100'0000'0000'0000, &number));  // bus 1
  EXPECT_FALSE(lun_number(0x8000'0000'0000'0000, &number));  // logical unit addressing
  EXPECT_FALSE(lun_number(0x0001'0001'0000'0000, &number));  // a second level
}

}  // namespace
}  // namespace sluice::scsi
