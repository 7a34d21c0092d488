#include "scsi/inquiry.h"

#include <gtest/gtest.h>

#include "scsi/expected_bytes.h"

namespace sluice::scsi {
namespace {

InquiryUnit unit() {
  InquiryUnit u;
  u.identity.uuid = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0x4d, 0xef,
                     0x81, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};
  u.identity.serial = "SN01";
  u.port.target_name = "iqn.2026-11.dev.sluice:a";
  u.port.portal_group = 0x1f;
  u.port.relative_target_port = 3;
  u.port.target_port_group = 2;
  return u;
}

std::vector<uint8_t> page(uint8_t code, const InquiryUnit& u) {
  return built([&](MutableBytes out) {
    size_t size = 0;
    EXPECT_TRUE(build_vpd_page(code, u, out, &size));
    return size;
  });
}

std::vector<uint8_t> inquiry(std::string_view cdb, const InquiryUnit& u) {
  return built([&](MutableBytes out) {
    const auto size = build_inquiry(hex(cdb), u, out);
    EXPECT_TRUE(size.ok());
    return size ? *size : 0;
  });
}

Sense refusal(std::string_view cdb, const InquiryUnit& u) {
  std::vector<uint8_t> out(512);
  const auto size = build_inquiry(hex(cdb), u, out);
  EXPECT_FALSE(size.ok());
  return size ? Sense{} : size.sense();
}

TEST(Inquiry, StandardDataDescribesAnSpcBlockDevice) {
  EXPECT_EQ(inquiry("12 00 00 00 60 00", unit()),
            hex("00 00 06 12 5b 18 10 02") + ascii("SLUICE  VOLUME          0001") +
                hex("00*22  00a0 0960 0460 05c0 04c0 0600 00*4  00*22"));
}

TEST(Inquiry, AbsentUnitsReportPeripheralQualifier3AndNoCapabilities) {
  InquiryUnit u;
  u.peripheral = Peripheral::kAbsent;
  const auto data = inquiry("12 00 00 00 60 00", u);
  EXPECT_EQ(data[0], 0x7f);
  EXPECT_EQ(data[5], 0x00);
  EXPECT_EQ(inquiry("12 01 00 00 60 00", u), hex("7f 00 00 01 00"));
  EXPECT_EQ(refusal("12 01 83 00 60 00", u).asc, 0x24);
}

TEST(Inquiry, WellKnownUnitsHaveNoBlockPages) {
  InquiryUnit u = unit();
  u.peripheral = Peripheral::kWellKnownUnit;
  EXPECT_EQ(inquiry("12 01 00 00 60 00", u), hex("1e 00 00 03 00 83 86"));
  // no logical unit designator: the first is the relative target port
  const auto id = page(0x83, u);
  EXPECT_EQ(id[4], 0x51);
  EXPECT_EQ(id[5], 0x94);
}

TEST(Inquiry, PageCodeWithoutEvpdIsRefused) {
  const Sense s = refusal("12 00 01 00 60 00", unit());
  EXPECT_EQ(s.asc, 0x24);
  EXPECT_EQ(s.pointer, 2);
}

TEST(Inquiry, ThePageListContainsExactlyTheSupportedPages) {
  for (const bool copies : {true, false}) {
    InquiryUnit u = unit();
    u.support.third_party_copy = u.support.tokens = copies;
    const auto list = page(0x00, u);
    const auto expected = copies ? hex("00 00 00 08 00 80 83 86 8f b0 b1 b2")
                                 : hex("00 00 00 07 00 80 83 86 b0 b1 b2");
    EXPECT_EQ(list, expected);
    for (unsigned code = 0; code < 256; ++code) {
      std::vector<uint8_t> out(4096);
      size_t size = 0;
      const bool listed = std::find(list.begin() + 4, list.end(), code) != list.end();
      EXPECT_EQ(build_vpd_page(static_cast<uint8_t>(code), u, out, &size), listed) << code;
    }
  }
}

TEST(Inquiry, TheLengthFieldOfEveryPageMatchesItsLength) {
  const InquiryUnit u = unit();
  for (const uint8_t code : {0x00, 0x80, 0x83, 0x86, 0x8f, 0xb0, 0xb1, 0xb2}) {
    const auto data = page(code, u);
    EXPECT_EQ(data[1], code);
    EXPECT_EQ(load_be16(&data[2]) + 4u, data.size()) << int{code};
  }
}

TEST(Inquiry, TheSerialNumberPageContainsTheSerialNumber) {
  EXPECT_EQ(page(0x80, unit()), hex("00 80 00 04") + ascii("SN01"));
}

TEST(Inquiry, DeviceIdentificationNamesUnitPortAndTarget) {
  EXPECT_EQ(page(0x83, unit()),
            hex("00 83 00 a6") + hex("01 03 00 08  31 23 45 67 89 ab cd ef") + hex("02 01 00 0c") +
                ascii("SLUICE  SN01") +
                hex("01 0a 00 12  10 00 12 34 56 78 9a bc 4d ef 81 23 45 67 89 ab cd ef") +
                hex("03 08 00 18") + ascii("naa.3123456789abcdef") + hex("00*4") +
                hex("51 94 00 04  00 00 00 03") + hex("51 95 00 04  00 00 00 02") +
                hex("53 98 00 24") + ascii("iqn.2026-11.dev.sluice:a,t,0x001f") + hex("00*3") +
                hex("53 a8 00 1c") + ascii("iqn.2026-11.dev.sluice:a") + hex("00*4"));
}

TEST(Inquiry, LongestTargetNameStillFitsItsDesignator) {
  InquiryUnit u = unit();
  const std::string name = "iqn.2026-11.dev.sluice:" + std::string(200, 'x');
  u.port.target_name = name;
  const auto data = page(0x83, u);
  size_t at = 4;
  while (at < data.size()) at += 4 + data[at + 3];
  EXPECT_EQ(at, data.size());
}

TEST(Inquiry, ExtendedPageReportsTaskAttributesAndAVolatileCacheOnlyIfPresent) {
  InquiryUnit u = unit();
  EXPECT_EQ(page(0x86, u), hex("00 86 00 3c 00 07 00 00*6 28 00*50"));
  u.volatile_cache = true;
  EXPECT_EQ(page(0x86, u)[6], 0x01);
}

TEST(Inquiry, TheBlockLimitsPageEncodesEveryLimit) {
  InquiryUnit u = unit();
  u.limits = {.write_same_non_zero = true,
              .max_compare_and_write = 0xff,
              .optimal_granularity = 8,
              .max_transfer = 0x8000,
              .optimal_transfer = 0x800,
              .max_prefetch = 0x10000,
              .max_unmap_blocks = 0x100000,
              .max_unmap_descriptors = 0x100,
              .unmap_granularity = 8,
              .unmap_alignment_valid = true,
              .unmap_alignment = 7,
              .max_write_same = 0x800000,
              .max_atomic_transfer = 0x20,
              .atomic_alignment = 8,
              .atomic_granularity = 8};
  EXPECT_EQ(page(0xb0, u), hex("00 b0 00 3c 01 ff 00 08 00008000 00000800 00010000 00100000"
                               "00000100 00000008 80000007 0000000000800000 00000020 00000008"
                               "00000008 00000000 00000000"));
}

TEST(Inquiry, TheCharacteristicsPageReportsTheRotationRate) {
  InquiryUnit u = unit();
  EXPECT_EQ(page(0xb1, u), hex("00 b1 00 3c 00 01 00*58"));
  u.characteristics.rotational = true;
  EXPECT_EQ(page(0xb1, u), hex("00 b1 00 3c 00 00 00*58"));
}

TEST(Inquiry, TheProvisioningPageReportsUnmapSupportAndThreshold) {
  InquiryUnit u = unit();
  EXPECT_EQ(page(0xb2, u), hex("00 b2 00 04 00 00 00 00"));
  u.provisioning = {.thin = true,
                    .unmap = true,
                    .write_same_unmap = true,
                    .reads_zeros = true,
                    .anchor = false,
                    .threshold_exponent = 11};
  EXPECT_EQ(page(0xb2, u), hex("00 b2 00 04 0b e4 02 00"));
}

TEST(Inquiry, ThirdPartyCopyPageListsCommandsLimitsAndTokens) {
  InquiryUnit u = unit();
  u.copy.max_token_blocks = 0x10000;
  u.copy.optimal_token_blocks = 0x8000;
  u.copy.max_segment_bytes = 0x01fffe00;
  const auto data = page(0x8f, u);
  const auto token_limits =
      hex("0000 0020 00*6 0040 00000078 0000001e 0000000000010000 0000000000008000");
  const auto commands = hex("0001 0010 0c 83 03 00 10 11 84 05 00 01 03 04 07 00*3");
  const auto parameters = hex("0004 001c 00*4 0010 0100 00001e00 00*4 00*12");
  const auto descriptors = hex("0008 0004 02 02 e4 00");
  const auto features =
      hex("0106 005c 00 00*11 0000001e 00000258 00000078 00*18 0030"
          "00 00 002c 00 00 0000 0000000002000000 0000000001000000"
          "0000000001000000 0000000001000000 00*8");
  const auto types =
      hex("0108 0084 00 00 0080  00010000 03 00 8000 00*56  ffff0001 02 00 0000 00*56");
  const auto general = hex("8001 0020 00000010 00000010 01fffe00 09 00 00*18");
  EXPECT_EQ(data, hex("00 8f 01 6c") + token_limits + commands + parameters + descriptors +
                      features + types + general);
}

TEST(Inquiry, ThirdPartyCopyPageOmitsTokensIfUnsupported) {
  InquiryUnit u = unit();
  u.support.tokens = false;
  const auto data = page(0x8f, u);
  EXPECT_EQ(load_be16(&data[4]), 0x0001);
  EXPECT_EQ(std::vector<uint8_t>(data.begin() + 8, data.begin() + 18),
            hex("09 83 01 00 84 04 00 01 03 04"));
}

TEST(Identity, NaaType6ContainsTheOui) {
  Identity id = unit().identity;
  id.oui = 0xabcdef;
  const Naa naa = naa_of(id);
  EXPECT_EQ(std::vector<uint8_t>(naa.bytes().begin(), naa.bytes().end()),
            hex("6a bc de f1 23 45 67 89  81 23 45 67 89 ab cd ef"));
}

TEST(Identity, NaaDependsOnEveryRandomBitOfTheUuid) {
  const Identity base = unit().identity;
  for (size_t bit = 0; bit < 64; ++bit) {
    if (bit >= 48 && bit < 52) continue;  // version
    Identity other = base;
    other.uuid[bit / 8] ^= static_cast<uint8_t>(0x80 >> bit % 8);
    EXPECT_NE(naa_of(other).value, naa_of(base).value) << bit;
  }
}

TEST(Identity, MatchesOnlyTheDesignatorsOfItsOwnUnit) {
  const InquiryUnit u = unit();
  const auto data = page(0x83, u);
  size_t own = 0;
  size_t others = 0;
  for (size_t at = 4; at < data.size(); at += 4 + data[at + 3]) {
    const ByteView d = ByteView(data).subspan(at, 4 + data[at + 3]);
    (designates(d, u.identity) ? own : others) += 1;
    Identity other = u.identity;
    other.uuid[7] ^= 1;
    other.serial = "SN02";
    EXPECT_FALSE(designates(d, other));
  }
  EXPECT_EQ(own, 3);     // NAA, T10 vendor id, UUID
  EXPECT_EQ(others, 5);  // names by SCSI name string, port and target designators
  EXPECT_FALSE(designates(hex("01 03 00 08 31 23"), u.identity));
  EXPECT_FALSE(designates({}, u.identity));
}

}  // namespace
}  // namespace sluice::scsi
