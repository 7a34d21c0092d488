#include "scsi/report_opcodes.h"

#include <gtest/gtest.h>

#include "scsi/expected_bytes.h"
#include "scsi/refusal_text.h"

namespace sluice::scsi {
namespace {

std::vector<uint8_t> report(std::string_view cdb, const Support& support = {}) {
  return built([&](MutableBytes out) {
    const auto size = build_report_opcodes(hex(cdb), support, out);
    EXPECT_TRUE(size.ok()) << cdb;
    return size ? *size : 0;
  });
}

std::string refused(std::string_view cdb) {
  std::vector<uint8_t> out(kMaxReportOpcodes);
  return refusal_of(build_report_opcodes(hex(cdb), {}, out));
}

constexpr const char* kAll = "a3 0c 00 00 00 00 00 00 ff ff 00 00";
constexpr const char* kAllWithTimeouts = "a3 0c 80 00 00 00 00 00 ff ff 00 00";

size_t supported_count(const Support& support) {
  size_t count = 0;
  for (const CommandInfo& info : command_table()) count += supported(info, support);
  return count;
}

TEST(ReportOpcodes, TheFullListContainsTheTableWithServiceActions) {
  const auto data = report(kAll);
  EXPECT_EQ(load_be32(data.data()) + 4u, data.size());
  EXPECT_EQ(data.size(), 4 + 8 * supported_count({}));
  EXPECT_EQ(std::vector<uint8_t>(data.begin() + 4, data.begin() + 12),
            hex("00 00 00 00 00 00 00 06"));
  const auto xcopy = hex("83 00 00 10 00 01 00 10");
  EXPECT_NE(std::search(data.begin(), data.end(), xcopy.begin(), xcopy.end()), data.end());
}

TEST(ReportOpcodes, EveryCommandHasATimeoutDescriptorAndTheListFits) {
  const auto data = report(kAllWithTimeouts);
  EXPECT_EQ(data.size(), 4 + 20 * supported_count({}));
  EXPECT_LE(data.size(), kMaxReportOpcodes);
  for (size_t at = 4; at < data.size(); at += 20) {
    EXPECT_EQ(data[at + 5] & 0x02, 0x02);
    EXPECT_EQ(load_be16(&data[at + 8]), 0x000a);
    EXPECT_NE(load_be32(&data[at + 16]), 0u);
  }
}

TEST(ReportOpcodes, UnsupportedCommandsAreNotListed) {
  const Support all{.write_atomic = true};
  const auto has_atomic = [](const std::vector<uint8_t>& data) {
    for (size_t at = 4; at < data.size(); at += 8) {
      if (data[at] == 0x9c) return true;
    }
    return false;
  };
  EXPECT_TRUE(has_atomic(report(kAll, all)));
  EXPECT_FALSE(has_atomic(report(kAll)));
  EXPECT_EQ(report("a3 0c 01 9c 00 00 00 00 ff ff"), hex("00 01 00 00"));
}

TEST(ReportOpcodes, AQueryOfOneCommandReturnsItsUsage) {
  EXPECT_EQ(report("a3 0c 01 28 00 00 00 00 ff ff"),
            hex("00 03 00 0a  28 18 ff ff ff ff 3f ff ff 00"));
  EXPECT_EQ(report("a3 0c 81 00 00 00 00 00 ff ff"),
            hex("00 83 00 06  00 00 00 00 00 00  00 0a 00 00 00*4 00 00 00 1e"));
  EXPECT_EQ(report("a3 0c 02 9e 00 10 00 00 ff ff"),
            hex("00 03 00 10  9e 10 00*8 ff ff ff ff 00 00"));
}

TEST(ReportOpcodes, UsageShowsOnlySupportedBits) {
  Support plain{.write_same_unmap = false};
  EXPECT_EQ(report("a3 0c 01 93 00 00 00 00 ff ff", plain)[5], 0x01);
  EXPECT_EQ(report("a3 0c 01 93 00 00 00 00 ff ff")[5], 0x09);
  plain = {.anchor = true};
  EXPECT_EQ(report("a3 0c 01 93 00 00 00 00 ff ff", plain)[5], 0x19);
}

TEST(ReportOpcodes, EveryCommandIsReportedByTheOptionThatFitsItAndRefusedByTheOther) {
  for (const CommandInfo& info : command_table()) {
    if (!supported(info, {})) continue;
    const bool has_action = info.service_action != kNoServiceAction;
    std::vector<uint8_t> out(64);
    for (const uint8_t option : {1, 2, 3}) {
      std::vector<uint8_t> cdb = hex("a3 0c 00 00 00 00 00 00 ff ff 00 00");
      cdb[2] = option;
      cdb[3] = info.opcode;
      if (has_action) store_be16(&cdb[4], info.service_action);
      const bool fits = option == 3 || (option == 2) == has_action;
      const auto size = build_report_opcodes(cdb, {}, out);
      EXPECT_EQ(refusal_of(size), fits ? "ok" : "24/00 cdb 2.2") << info.name;
      if (fits) {
        EXPECT_EQ(*size, 4u + info.cdb_length) << info.name;
        EXPECT_EQ(out[4], info.opcode);
      }
    }
  }
}

TEST(ReportOpcodes, UnknownCommandsAreReportedAsNotSupported) {
  EXPECT_EQ(report("a3 0c 01 04 00 00 00 00 ff ff"), hex("00 01 00 00"));
  EXPECT_EQ(report("a3 0c 02 04 00 01 00 00 ff ff"), hex("00 01 00 00"));
  EXPECT_EQ(report("a3 0c 02 9e 00 11 00 00 ff ff"), hex("00 01 00 00"));
  EXPECT_EQ(report("a3 0c 03 28 00 01 00 00 ff ff"), hex("00 01 00 00"));
  EXPECT_EQ(report("a3 0c 02 9e 12 34 00 00 ff ff"), hex("00 01 00 00"));
  EXPECT_EQ(refused("a3 0c 04 28 00 00 00 00 ff ff"), "24/00 cdb 2.2");
}

TEST(ReportTaskManagement, ReportsTheSupportedFunctions) {
  const TaskManagementSupport all;
  const auto run = [&](std::string_view cdb, const TaskManagementSupport& s) {
    return built([&](MutableBytes out) { return build_report_task_management(hex(cdb), s, out); });
  };
  EXPECT_EQ(run("a3 0d 00 00 00 00 00 00 00 10", all), hex("dc 07 00 00"));
  EXPECT_EQ(run("a3 0d 80 00 00 00 00 00 00 10", all), hex("dc 07 00 0c 00*12"));
  EXPECT_EQ(run("a3 0d 00 00 00 00 00 00 00 10", {.query_task = false, .it_nexus_reset = false}),
            hex("d8 06 00 00"));
}

}  // namespace
}  // namespace sluice::scsi
