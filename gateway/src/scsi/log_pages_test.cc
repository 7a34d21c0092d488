#include "scsi/log_pages.h"

#include <gtest/gtest.h>

#include "scsi/expected_bytes.h"
#include "scsi/refusal_text.h"

namespace sluice::scsi {
namespace {

LogUnit thin() {
  return {.has_provisioning = true,
          .available_bytes = uint64_t{100} << 20,
          .used_bytes = uint64_t{3} << 20,
          .dedicated = false,
          .threshold_exponent = 11,
          .block_size = 512};
}

std::vector<uint8_t> log(std::string_view cdb, const LogUnit& unit) {
  return built([&](MutableBytes out) {
    const auto size = build_log_sense(hex(cdb), unit, out);
    EXPECT_TRUE(size.ok()) << cdb;
    return size ? *size : 0;
  });
}

std::string refused(std::string_view cdb, const LogUnit& unit) {
  std::vector<uint8_t> out(256);
  return refusal_of(build_log_sense(hex(cdb), unit, out));
}

TEST(LogSense, ListsOnlySupportedPages) {
  EXPECT_EQ(log("4d 00 40 00 00 00 00 00 ff 00", {}), hex("80 00 00 01 00"));
  EXPECT_EQ(log("4d 00 40 00 00 00 00 00 ff 00", thin()), hex("80 00 00 02 00 0c"));
  EXPECT_EQ(log("4d 00 40 ff 00 00 00 00 ff 00", {}), hex("c0 ff 00 04 00 00 00 ff"));
  EXPECT_EQ(log("4d 00 40 ff 00 00 00 00 ff 00", thin()), hex("c0 ff 00 06 00 00 00 ff 0c 00"));
}

TEST(LogSense, ProvisioningCountsThresholdSets) {
  EXPECT_EQ(log("4d 00 4c 00 00 00 00 00 ff 00", thin()),
            hex("8c 00 00 18  00 01 03 08 00 00 00 64 02 00 00 00"
                "             00 02 03 08 00 00 00 03 01 00 00 00"));
}

TEST(LogSense, ProvisioningOmitsUnknownCountsAndSaturates) {
  LogUnit unit = thin();
  unit.available_bytes = UINT64_MAX;
  unit.used_bytes = UINT64_MAX - 1;
  unit.threshold_exponent = 0;
  EXPECT_EQ(log("4d 00 4c 00 00 00 00 00 ff 00", unit),
            hex("8c 00 00 0c  00 02 03 08 ff ff ff ff 01 00 00 00"));
}

TEST(LogSense, AParameterPointerSkipsEarlierParameters) {
  EXPECT_EQ(log("4d 00 4c 00 00 00 02 00 ff 00", thin()),
            hex("8c 00 00 0c  00 02 03 08 00 00 00 03 01 00 00 00"));
}

TEST(LogSense, RefusesUnknownPagesSubpagesAndPointers) {
  EXPECT_EQ(refused("4d 00 4d 00 00 00 00 00 ff 00", thin()), "24/00 cdb 2.5");
  EXPECT_EQ(refused("4d 00 4c 00 00 00 00 00 ff 00", {}), "24/00 cdb 2.5");
  EXPECT_EQ(refused("4d 00 4c 01 00 00 00 00 ff 00", thin()), "24/00 cdb 3.7");
  EXPECT_EQ(refused("4d 00 40 01 00 00 00 00 ff 00", thin()), "24/00 cdb 3.7");
  EXPECT_EQ(refused("4d 00 4c 00 00 00 03 00 ff 00", thin()), "24/00 cdb 5.7");
  EXPECT_EQ(refused("4d 00 40 00 00 00 01 00 ff 00", thin()), "24/00 cdb 5.7");
}

}  // namespace
}  // namespace sluice::scsi
