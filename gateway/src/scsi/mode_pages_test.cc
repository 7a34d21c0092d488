#include "scsi/mode_pages.h"

#include <gtest/gtest.h>

#include "scsi/expected_bytes.h"

namespace sluice::scsi {
namespace {

ModeUnit unit() {
  ModeUnit u;
  u.blocks = 0x1000;
  return u;
}

std::vector<uint8_t> sensed(std::string_view cdb, const ModeUnit& u) {
  return built([&](MutableBytes out) {
    const auto size = build_mode_sense(hex(cdb), u, out);
    EXPECT_TRUE(size.ok()) << cdb;
    return size ? *size : 0;
  });
}

Sense sense_refusal(std::string_view cdb) {
  std::vector<uint8_t> out(kMaxModeData);
  const auto size = build_mode_sense(hex(cdb), unit(), out);
  EXPECT_FALSE(size.ok()) << cdb;
  return size ? Sense{} : size.sense();
}

const auto kErrorRecovery = hex("01 0a 00*10");
const auto kCaching = hex("08 12 00*18");
const auto kControl = hex("0a 0a 20 10 00 40 00 00 ff ff 00 00");
const auto kControlExtension = hex("4a 01 00 1c 01 00*27");
const auto kPower = hex("1a 26 00*38");
const auto kExceptions = hex("1c 0a 08 00*9");

TEST(ModeSense, AllPagesFollowTheHeaderAndDescriptorInOrder) {
  EXPECT_EQ(sensed("1a 00 3f 00 ff 00", unit()), hex("6b 00 10 08  00 00 10 00 00 00 02 00") +
                                                     kErrorRecovery + kCaching + kControl + kPower +
                                                     kExceptions);
}

TEST(ModeSense, AllSubpagesAddTheControlExtension) {
  EXPECT_EQ(sensed("1a 08 3f ff ff 00", unit()), hex("83 00 10 00") + kErrorRecovery + kCaching +
                                                     kControl + kControlExtension + kPower +
                                                     kExceptions);
  EXPECT_EQ(sensed("1a 08 0a ff ff 00", unit()), hex("2f 00 10 00") + kControl + kControlExtension);
  EXPECT_EQ(sensed("1a 08 0a 01 ff 00", unit()), hex("23 00 10 00") + kControlExtension);
}

TEST(ModeSense, TenByteFormHasLongHeaderAndOnRequestLongLbas) {
  ModeUnit u = unit();
  u.blocks = 0x1'0000'0001;
  u.block_size = 4096;
  EXPECT_EQ(sensed("5a 00 08 00 00 00 00 00 ff 00", u),
            hex("00 22 00 10 00 00 00 08  ff ff ff ff 00 00 10 00") + kCaching);
  EXPECT_EQ(sensed("5a 10 08 00 00 00 00 00 ff 00", u),
            hex("00 2a 00 10 01 00 00 10  00 00 00 01 00 00 00 01 00*4 00 00 10 00") + kCaching);
  EXPECT_EQ(sensed("5a 18 08 00 00 00 00 00 ff 00", u), hex("00 1a 00 10 00 00 00 00") + kCaching);
}

TEST(ModeSense, CurrentDefaultAndChangeableValuesDiffer) {
  ModeUnit u = unit();
  u.current = {.wce = true, .d_sense = true, .swp = true};
  u.write_protected = true;
  EXPECT_EQ(sensed("1a 08 08 00 ff 00", u), hex("17 00 90 00 08 12 04 00*17"));
  EXPECT_EQ(sensed("1a 08 88 00 ff 00", u), hex("17 00 90 00 08 12 00*18"));
  EXPECT_EQ(sensed("1a 08 48 00 ff 00", u), hex("17 00 90 00 08 12 04 00*17"));
  EXPECT_EQ(sensed("1a 08 0a 00 ff 00", u), hex("0f 00 90 00 0a 0a 24 10 08 40 00 00 ff ff 00 00"));
  EXPECT_EQ(sensed("1a 08 4a 00 ff 00", u), hex("0f 00 90 00 0a 0a 04 00 08 00*7"));
  EXPECT_EQ(sensed("1a 08 41 00 ff 00", u), hex("0f 00 90 00 01 0a 00*10"));
  u.wce_changeable = false;
  EXPECT_EQ(sensed("1a 08 48 00 ff 00", u), hex("17 00 90 00 08 12 00*18"));
}

TEST(ModeSense, SavedValuesAreNotSupported) {
  const Sense s = sense_refusal("1a 00 ff 00 ff 00");
  EXPECT_EQ(s.asc, 0x39);
  EXPECT_EQ(s.ascq, 0x00);
}

TEST(ModeSense, UnknownPagesAndSubpagesAreRefusedWithTheirFieldPointer) {
  EXPECT_EQ(sense_refusal("1a 00 05 00 ff 00").pointer, 2);
  EXPECT_EQ(sense_refusal("1a 00 08 01 ff 00").pointer, 3);
  EXPECT_EQ(sense_refusal("1a 00 3f 01 ff 00").pointer, 3);
  EXPECT_EQ(sense_refusal("1a 00 05 00 ff 00").asc, 0x24);
}

std::vector<uint8_t> select6(size_t length, int flags = 0x10) {
  return {0x15, static_cast<uint8_t>(flags), 0, 0, static_cast<uint8_t>(length), 0};
}

ModeState selected(const std::vector<uint8_t>& list, const ModeUnit& u = unit()) {
  const auto state = parse_mode_select(select6(list.size()), u, list);
  EXPECT_TRUE(state.ok());
  return state ? *state : ModeState{};
}

// asc/ascq and where
std::string refused(const std::vector<uint8_t>& list, const ModeUnit& u = unit(), int cut = 0,
                    int flags = 0x10) {
  const auto cdb = select6(list.size() - static_cast<size_t>(cut), flags);
  const auto state = parse_mode_select(cdb, u, list);
  if (state.ok()) return "ok";
  const Sense& s = state.sense();
  char text[48];
  std::snprintf(text, sizeof text, "%02x/%02x %s%d.%d", s.asc, s.ascq, s.in_cdb ? "cdb " : "",
                s.pointer, s.bit_valid ? s.bit : -1);
  return text;
}

TEST(ModeSelect, ChangesExactlyTheChangeableBits) {
  EXPECT_EQ(selected(hex("00 00 00 00 08 12 04 00*17")), (ModeState{.wce = true}));
  EXPECT_EQ(selected(hex("00*4 0a 0a 24 10 08 40 00 00 ff ff 00 00")),
            (ModeState{.d_sense = true, .swp = true}));
  ModeUnit u = unit();
  u.current = {.wce = true, .d_sense = true, .swp = true};
  EXPECT_EQ(selected(hex("00*4 08 12 00*18 0a 0a 20 10 00 40 00 00 ff ff 00 00"), u), ModeState{});
}

TEST(ModeSelect, AcceptsTheDataReturnedByModeSense) {
  ModeUnit u = unit();
  u.current = {.wce = true, .d_sense = false, .swp = true};
  auto list = sensed("5a 10 3f ff 00 00 00 01 00 00", u);
  std::vector<uint8_t> cdb = hex("55 10 00 00 00 00 00 00 00 00");
  store_be16(&cdb[7], static_cast<uint16_t>(list.size()));
  const auto state = parse_mode_select(cdb, u, list);
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(*state, u.current);
}

TEST(ModeSelect, AcceptsABlockDescriptorThatChangesNothing) {
  EXPECT_EQ(refused(hex("00 00 00 08  00 00 10 00 00 00 02 00")), "ok");
  EXPECT_EQ(refused(hex("00 00 00 08  00 00 00 00 00 00 02 00")), "ok");
  EXPECT_EQ(refused(hex("00 00 00 08  ff ff ff ff 00 00 02 00")), "ok");
  EXPECT_EQ(refused(hex("00 00 00 08  00 00 10 01 00 00 02 00")), "26/00 4.7");
  EXPECT_EQ(refused(hex("00 00 00 08  00 00 10 00 00 00 10 00")), "26/00 9.7");
}

TEST(ModeSelect, AnEmptyListChangesNothing) {
  ModeUnit u = unit();
  u.current.wce = true;
  const auto state = parse_mode_select(select6(0, 0), u, {});
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(*state, u.current);
}

TEST(ModeSelect, RefusesUnchangeableBitsWithTheirFieldPointer) {
  EXPECT_EQ(refused(hex("00*4 08 12 05 00*17")), "26/00 6.0");                       // RCD
  EXPECT_EQ(refused(hex("00*4 0a 0a 00 10 00 40 00 00 ff ff 00 00")), "26/00 6.5");  // TST
  EXPECT_EQ(refused(hex("00*4 1c 0a 00*10")), "26/00 6.3");                          // DEXCPT
  ModeUnit fixed = unit();
  fixed.wce_changeable = false;
  EXPECT_EQ(refused(hex("00*4 08 12 04 00*17"), fixed), "26/00 6.2");
}

TEST(ModeSelect, RefusesMalformedLists) {
  EXPECT_EQ(refused(hex("00*3")), "1a/00 0.-1");
  EXPECT_EQ(refused(hex("00 01 00 00")), "26/00 1.7");           // medium type
  EXPECT_EQ(refused(hex("00 00 00 07 00*7")), "26/00 3.7");      // descriptor length
  EXPECT_EQ(refused(hex("00 00 00 08 00*4")), "1a/00 0.-1");     // cut descriptor
  EXPECT_EQ(refused(hex("00*4 05 0a 00*10")), "26/00 4.5");      // unknown page
  EXPECT_EQ(refused(hex("00*4 08 0a 00*10")), "26/00 5.7");      // page length
  EXPECT_EQ(refused(hex("00*4 08 12 04 00*16")), "1a/00 0.-1");  // cut page
  EXPECT_EQ(refused(hex("00*4 08")), "1a/00 0.-1");              // cut page header
  EXPECT_EQ(refused(hex("00*4 08 12 04 00*17"), unit(), 0, 0x00), "24/00 cdb 1.4");  // PF
  EXPECT_EQ(refused(hex("00*4 08 12 04 00*17"), unit(), -1), "1a/00 0.-1");  // less data than said
}

}  // namespace
}  // namespace sluice::scsi
