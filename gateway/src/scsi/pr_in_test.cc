#include "scsi/pr_in.h"

#include <gtest/gtest.h>

#include "scsi/expected_bytes.h"

namespace sluice::scsi {
namespace {

TEST(PrIn, ReadKeysReportsGenerationAndKeys) {
  const uint64_t keys[] = {0x0102030405060708, 1};
  EXPECT_EQ(built([&](MutableBytes out) { return build_pr_read_keys(7, keys, out); }),
            hex("00000007 00000010 0102030405060708 0000000000000001"));
  EXPECT_EQ(built([&](MutableBytes out) { return build_pr_read_keys(7, {}, out); }),
            hex("00000007 00000000"));
}

TEST(PrIn, ReadReservationReportsHolderKeyAndType) {
  const auto run = [](PrType type) {
    return built([&](MutableBytes out) { return build_pr_read_reservation(9, type, 0xabc, out); });
  };
  EXPECT_EQ(run(PrType::kNone), hex("00000009 00000000"));
  EXPECT_EQ(run(PrType::kExclusiveAccess),
            hex("00000009 00000010 0000000000000abc 00000000 00 03 0000"));
  // Every registrant holds it, so no key is shown (SPC-5 §5.14.10).
  EXPECT_EQ(run(PrType::kWriteExclusiveAllRegistrants),
            hex("00000009 00000010 0000000000000000 00000000 00 07 0000"));
}

TEST(PrIn, ReportCapabilitiesReportsPersistenceAndCompatibleReserve) {
  const auto run = [](const PrCapabilities& c) {
    return built([&](MutableBytes out) { return build_pr_report_capabilities(c, out); });
  };
  EXPECT_EQ(run({}), hex("0008 0c 90 ea 01 0000"));
  EXPECT_EQ(run({.persist_capable = true, .persist_active = true, .compatible_reserve = true}),
            hex("0008 1d 91 ea 01 0000"));
}

TEST(PrIn, ReadFullStatusDescribesEveryRegistration) {
  const PrRegistration registrations[] = {
      {.key = 0x11,
       .initiator_name = "iqn.x:host",
       .isid = {0, 2, 0x3d, 0, 0, 1},
       .relative_target_port = 0x0203,
       .holder = true,
       .type = PrType::kWriteExclusiveRegistrantsOnly},
      {.key = 0x22,
       .initiator_name = "iqn.y",
       .isid = {},
       .all_target_ports = true,
       .relative_target_port = 5,
       .type = PrType::kWriteExclusiveRegistrantsOnly},
  };
  const auto expected = hex("00000003 0000006c"
                            "0000000000000011 00000000 01 05 00000000 0203 00000020 45 00 00 1c") +
                        ascii("iqn.x:host,i,0x00023d000001") + hex("00") +
                        hex("0000000000000022 00000000 02 00 00000000 0000 0000001c 45 00 00 18") +
                        ascii("iqn.y,i,0x000000000000") + hex("00*2");
  EXPECT_EQ(
      built([&](MutableBytes out) { return build_pr_read_full_status(3, registrations, out); }),
      expected);
  EXPECT_EQ(full_status_size(registrations), expected.size());
}

}  // namespace
}  // namespace sluice::scsi
