#include "scsi/command_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "scsi/expected_bytes.h"

namespace sluice::scsi {
namespace {

std::vector<uint8_t> cdb(std::string_view text) {
  auto bytes = hex(text);
  bytes.resize(16);
  return bytes;
}

// "ok", or sense key, codes and field pointer of the refusal.
std::string answer(const std::vector<uint8_t>& bytes) {
  Sense s;
  if (find_command(bytes, &s) != nullptr) return "ok";
  char text[64];
  std::snprintf(text, sizeof text, "%02x/%02x/%02x", static_cast<int>(s.key), s.asc, s.ascq);
  std::string out = text;
  if (s.specific == Sense::Specific::kFieldPointer) {
    out += (s.in_cdb ? " cdb " : " list ") + std::to_string(s.pointer);
    if (s.bit_valid) out += "." + std::to_string(s.bit);
  }
  return out;
}

TEST(CommandTable, EveryOperationInUseHasACommand) {
  std::set<Operation> seen;
  for (const CommandInfo& info : command_table()) seen.insert(info.operation);
  const std::set unused = {Operation::kReportTimestamp, Operation::kReportIdentifyingInformation};
  for (int op = 0; op < static_cast<int>(Operation::kCount); ++op) {
    if (unused.contains(static_cast<Operation>(op))) continue;
    EXPECT_TRUE(seen.contains(static_cast<Operation>(op))) << op;
  }
}

TEST(CommandTable, EntriesAreUniqueSortedAndFoundByTheirOwnUsage) {
  const CommandInfo* previous = nullptr;
  for (const CommandInfo& info : command_table()) {
    EXPECT_EQ(lookup_command(info.opcode, info.service_action), &info) << info.name;
    EXPECT_EQ(info.usage[0], info.opcode) << info.name;
    EXPECT_GT(info.timeout_seconds, 0) << info.name;
    for (size_t i = info.cdb_length - 1; i < 16; ++i) {  // CONTROL and beyond
      EXPECT_EQ(info.usage[i], 0) << info.name;
    }
    if (info.service_action != kNoServiceAction) {
      EXPECT_EQ(info.usage[1] & 0x1f, info.service_action) << info.name;
    }
    Sense s;
    EXPECT_EQ(find_command(ByteView(info.usage), &s), &info) << info.name;
    if (previous != nullptr) {
      EXPECT_LT(std::pair(previous->opcode, previous->service_action),
                std::pair(info.opcode, info.service_action));
    }
    previous = &info;
  }
}

TEST(CommandTable, CdbLengthFollowsTheOpcodeGroup) {
  for (const CommandInfo& info : command_table()) {
    constexpr int kLengths[] = {6, 10, 10, 0, 16, 12, 0, 0};  // SPC-5 §4.2.5.1
    EXPECT_EQ(info.cdb_length, kLengths[info.opcode >> 5]) << info.name;
  }
}

TEST(CommandTable, EveryUnusedBitIsRefusedWithItsFieldPointer) {
  for (const CommandInfo& info : command_table()) {
    for (size_t byte = 1; byte < info.cdb_length; ++byte) {
      for (int bit = 0; bit < 8; ++bit) {
        std::vector<uint8_t> c(16);
        c[0] = info.opcode;
        if (info.service_action != kNoServiceAction) {
          if (byte == 1 && bit < 5) continue;  // that is another service action
          c[1] = static_cast<uint8_t>(info.service_action);
        }
        c[byte] |= static_cast<uint8_t>(1 << bit);
        const bool used = (info.usage[byte] >> bit & 1) != 0;
        const bool lun_of_scsi2 = info.operation == Operation::kInquiry && byte == 1 && bit >= 5;
        const std::string want = used || lun_of_scsi2 ? "ok"
                                                      : "05/24/00 cdb " + std::to_string(byte) +
                                                            "." + std::to_string(bit);
        EXPECT_EQ(answer(c), want) << info.name;
      }
    }
  }
}

TEST(CommandTable, BytesBeyondAShortCdbAreIgnored) {
  std::vector<uint8_t> c(16, 0xff);
  std::fill_n(c.begin(), 6, uint8_t{0});
  EXPECT_EQ(answer(c), "ok");
}

TEST(CommandTable, UnknownOpcodesAreInvalid) {
  for (int opcode = 0; opcode < 256; ++opcode) {
    const bool known = std::ranges::any_of(
        command_table(), [&](const CommandInfo& info) { return info.opcode == opcode; });
    std::vector<uint8_t> c(16);
    c[0] = static_cast<uint8_t>(opcode);
    EXPECT_EQ(answer(c) == "05/20/00", !known) << opcode;
  }
}

TEST(CommandTable, UnknownServiceActionsAreRefusedWithTheirFieldPointer) {
  EXPECT_EQ(answer(cdb("5e 04")), "05/24/00 cdb 1.4");
  EXPECT_EQ(answer(cdb("9e 11")), "05/24/00 cdb 1.4");
  EXPECT_EQ(answer(cdb("83 1f")), "05/24/00 cdb 1.4");
}

TEST(CommandTable, ShortCdbsAreRefusedAtTheirEnd) {
  EXPECT_EQ(answer(hex("28 00 00 00 00 00 00 00 01")), "05/24/00 cdb 9");
  EXPECT_EQ(answer(hex("28 00 00 00 00 00 00 00 01 00")), "ok");
  EXPECT_EQ(answer(hex("a3")), "05/24/00 cdb 1.4");
}

TEST(CommandTable, CommonCdbVariantsOfHostsAreAcceptedOrRefusedAsExpected) {
  EXPECT_EQ(answer(cdb("28 20 00 00 00 00 00 00 01")), "05/24/00 cdb 1.5");  // RDPROTECT
  EXPECT_EQ(answer(cdb("28 e0 00 00 00 00 00 00 01")), "05/24/00 cdb 1.7");
  EXPECT_EQ(answer(cdb("28 18 00 00 00 00 1f 00 01")), "ok");                // DPO, FUA, group
  EXPECT_EQ(answer(cdb("28 01 00 00 00 00 00 00 01")), "05/24/00 cdb 1.0");  // RELADR
  EXPECT_EQ(answer(cdb("12 02 00 00 24")), "05/24/00 cdb 1.1");              // CMDDT
  EXPECT_EQ(answer(cdb("00 20")), "05/24/00 cdb 1.5");                       // SCSI-2 LUN field
  EXPECT_EQ(answer(cdb("12 e0 00 00 24")), "ok");  // the same, by Linux's scan of a single LUN
  EXPECT_EQ(answer(cdb("12 e2 00 00 24")), "05/24/00 cdb 1.1");
  EXPECT_EQ(answer(cdb("00 00 00 00 00 04")), "05/24/00 cdb 5.2");  // NACA
  EXPECT_EQ(answer(cdb("15 11 00 00 18")), "05/24/00 cdb 1.0");     // SP
  EXPECT_EQ(answer(cdb("1b 00 00 00 02")), "05/24/00 cdb 4.1");     // LOEJ
  EXPECT_EQ(answer(cdb("9c 00 00 00 00 00 00 00 00 00 00 08 00 08")), "05/24/00 cdb 11.3");
}

TEST(CommandTable, CommandsAndBitsThatAUnitDoesNotSupportAreRefused) {
  Support none{.unmap = false,
               .write_atomic = false,
               .third_party_copy = false,
               .tokens = false,
               .write_same_unmap = false,
               .anchor = false};
  const auto refusal = [&](std::string_view text) {
    Sense s;
    EXPECT_EQ(find_command(cdb(text), none, &s), nullptr) << text;
    return s;
  };
  EXPECT_EQ(refusal("42").asc, 0x20);
  EXPECT_EQ(refusal("9c").asc, 0x20);
  EXPECT_EQ(refusal("83 00").asc, 0x20);
  EXPECT_EQ(refusal("84 07").asc, 0x20);
  none.tokens = true;
  EXPECT_EQ(refusal("83 00").asc, 0x24);  // the opcode exists, this service action doesn't
  const Sense unmap_bit = refusal("41 08");
  EXPECT_EQ(unmap_bit.asc, 0x24);
  EXPECT_EQ(unmap_bit.pointer, 1);
  EXPECT_EQ(unmap_bit.bit, 3);
  Sense s;
  EXPECT_NE(find_command(cdb("41 00"), none, &s), nullptr);
  EXPECT_NE(find_command(cdb("28 00"), none, &s), nullptr);
  none.write_atomic = none.unmap = none.write_same_unmap = true;
  EXPECT_NE(find_command(cdb("9c 00"), none, &s), nullptr);
  EXPECT_NE(find_command(cdb("41 08"), none, &s), nullptr);
  EXPECT_EQ(refusal("41 18").bit, 4);  // ANCHOR
  EXPECT_EQ(refusal("42 01").bit, 0);
}

uint16_t flags(std::string_view text) {
  Sense s;
  const auto bytes = cdb(text);
  const CommandInfo* info = find_command(bytes, &s);
  return info == nullptr ? 0 : flags_of(*info, bytes);
}

TEST(CommandFlags, FollowTheReservationTables) {
  constexpr uint16_t kBoth = kAllowedUnderWriteExclusive | kAllowedUnderExclusiveAccess;
  const auto pr = [&](std::string_view text) { return flags(text) & kBoth; };
  // SPC-4 table 65, SBC-4 table 13
  for (const char* both : {"00", "12", "03", "a0", "4d", "25", "9e 10", "5e 00", "a3 0a", "84 00",
                           "84 07", "1b 00 00 00 01"}) {
    EXPECT_EQ(pr(both), kBoth) << both;
  }
  for (const char* we :
       {"08", "28", "88", "a8", "1a", "5a", "2f", "34", "9e 12", "a3 0c", "a3 0d", "83 10"}) {
    EXPECT_EQ(pr(we), kAllowedUnderWriteExclusive) << we;
  }
  for (const char* none : {"0a", "2a", "8a", "89", "8b", "35", "91", "42", "41", "93", "2e", "15",
                           "55", "83 00", "83 11", "a4 0a", "9c", "1b 00 00 00 00"}) {
    EXPECT_EQ(pr(none), 0) << none;
  }
}

TEST(CommandFlags, Reserve6AllowsOnlyIdentificationRequestSenseAndRelease6) {
  for (const char* text : {"12", "a0", "03", "17"}) {
    EXPECT_TRUE(flags(text) & kAllowedUnderReserve6) << text;
  }
  for (const char* text : {"00", "16", "1a", "28", "2a", "5e 00", "5f 00"}) {
    EXPECT_FALSE(flags(text) & kAllowedUnderReserve6) << text;
  }
}

TEST(CommandFlags, DataOutDependsOnBytchkAndNdob) {
  EXPECT_FALSE(flags("2f 00") & kDataOut);
  EXPECT_TRUE(flags("2f 02") & kDataOut);
  EXPECT_TRUE(flags("93 00") & kDataOut);
  EXPECT_FALSE(flags("93 01") & kDataOut);
}

TEST(CommandFlags, WritesAreMarkedAndReadsAreNot) {
  for (const CommandInfo& info : command_table()) {
    const bool writes = (info.flags & kMediumWrite) != 0;
    if (writes) {
      EXPECT_FALSE(info.flags & (kAllowedUnderWriteExclusive | kAllowedInStandby)) << info.name;
    }
  }
  EXPECT_TRUE(flags("42") & kMediumWrite);
  EXPECT_TRUE(flags("89") & kMediumWrite);
  EXPECT_FALSE(flags("28") & kMediumWrite);
}

}  // namespace
}  // namespace sluice::scsi
