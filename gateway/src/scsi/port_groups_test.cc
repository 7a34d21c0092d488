#include "scsi/port_groups.h"

#include <gtest/gtest.h>

#include "scsi/expected_bytes.h"
#include "scsi/refusal_text.h"

namespace sluice::scsi {
namespace {

std::vector<uint8_t> report(std::string_view cdb) {
  const uint16_t first[] = {1, 2};
  const uint16_t second[] = {0x103};
  const PortGroup groups[] = {
      {.id = 1, .state = AccessState::kOptimized, .preferred = true, .relative_ports = first},
      {.id = 0x102,
       .state = AccessState::kTransitioning,
       .status_code = 2,
       .relative_ports = second},
  };
  return built([&](MutableBytes out) {
    const auto size = build_report_port_groups(hex(cdb), groups, 30, out);
    EXPECT_TRUE(size.ok());
    return size ? *size : 0;
  });
}

const auto kDescriptors =
    hex("80 8b 00 01 00 00 00 02  00 00 00 01 00 00 00 02"
        "0f 8b 01 02 00 02 00 01  00 00 01 03");

TEST(ReportPortGroups, TheLengthOnlyFormatPrecedesTheDescriptorsWithTheirLength) {
  EXPECT_EQ(report("a3 0a 00 00 00 00 00 00 ff ff"), hex("0000001c") + kDescriptors);
}

TEST(ReportPortGroups, TheExtendedHeaderReportsTheTransitionTime) {
  EXPECT_EQ(report("a3 2a 00 00 00 00 00 00 ff ff"), hex("00000020 10 1e 00 00") + kDescriptors);
}

TEST(ReportPortGroups, OtherFormatsAreRefused) {
  std::vector<uint8_t> out(64);
  EXPECT_EQ(refusal_of(build_report_port_groups(hex("a3 4a 00*8"), {}, 0, out)), "24/00 cdb 1.7");
}

}  // namespace
}  // namespace sluice::scsi
