#include "scsi/sense.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scsi/expected_bytes.h"
#include "scsi/request_sense.h"

namespace sluice::scsi {
namespace {

std::vector<uint8_t> encoded(const Sense& sense, bool descriptors) {
  std::array<uint8_t, kMaxSenseBytes> out;
  out.fill(0xee);
  const size_t size = encode(sense, descriptors, out);
  return {out.begin(), out.begin() + static_cast<ptrdiff_t>(size)};
}

TEST(Sense, FixedFormatCarriesAFieldPointerIntoTheCdb) {
  EXPECT_EQ(encoded(Sense::invalid_field_in_cdb(2, 7), false),
            hex("70 00 05 00*4 0a 00*4 24 00 00 cf 00 02"));
}

TEST(Sense, FixedFormatCarriesAFieldPointerIntoTheParameterList) {
  EXPECT_EQ(encoded(Sense::invalid_field_in_parameter_list(0x0104), false),
            hex("70 00 05 00*4 0a 00*4 26 00 00 80 01 04"));
}

TEST(Sense, DescriptorFormatCarriesAFieldPointer) {
  EXPECT_EQ(encoded(Sense::invalid_field_in_cdb(1, 0), true),
            hex("72 05 24 00 00*3 08  02 06 00 00 c8 00 01 00"));
}

TEST(Sense, FixedFormatSetsValidForInformationOf32Bits) {
  EXPECT_EQ(encoded(Sense::lba_out_of_range(0xffffffff), false),
            hex("f0 00 05 ff ff ff ff 0a 00*4 21 00 00 00 00 00"));
}

TEST(Sense, FixedFormatOmitsInformationOfMoreThan32Bits) {
  EXPECT_EQ(encoded(Sense::lba_out_of_range(0x1'0000'0000), false),
            hex("70 00 05 00*4 0a 00*4 21 00 00 00 00 00"));
}

TEST(Sense, DescriptorFormatHolds64BitsOfInformation) {
  EXPECT_EQ(encoded(Sense::lba_out_of_range(0x0123456789abcdef), true),
            hex("72 05 21 00 00*3 0c  00 0a 80 00 01 23 45 67 89 ab cd ef"));
}

TEST(Sense, CommandSpecificInformationIsInBothFormats) {
  Sense s = Sense::make(SenseKey::kCopyAborted, 0x08, 0x04);
  s.has_command_specific = true;
  s.command_specific = 7;
  EXPECT_EQ(encoded(s, false), hex("70 00 0a 00*4 0a 00 00 00 07 08 04 00 00 00 00"));
  EXPECT_EQ(encoded(s, true), hex("72 0a 08 04 00*3 0c  01 0a 00 00 00*7 07"));
}

TEST(Sense, ProgressSetsNoFieldPointerBits) {
  Sense s = Sense::make(SenseKey::kNotReady, 0x04, 0x04);
  s.specific = Sense::Specific::kProgress;
  s.in_cdb = s.bit_valid = true;
  s.pointer = 0x8000;
  EXPECT_EQ(encoded(s, false), hex("70 00 02 00*4 0a 00*4 04 04 00 80 80 00"));
}

TEST(Sense, SegmentPointerSetsSd) {
  Sense s = Sense::make(SenseKey::kCopyAborted, 0x26, 0x00);
  s.specific = Sense::Specific::kSegmentPointer;
  s.pointer = 10;
  EXPECT_EQ(encoded(s, false), hex("70 00 0a 00*4 0a 00*4 26 00 00 a0 00 0a"));
}

TEST(Sense, AllDescriptorsTogetherFitAndAreInOrder) {
  Sense s = Sense::lba_out_of_range(1);
  s.has_command_specific = true;
  s.command_specific = 2;
  s.specific = Sense::Specific::kFieldPointer;
  s.pointer = 3;
  EXPECT_EQ(encoded(s, true), hex("72 05 21 00 00*3 20 00 0a 80 00 00*7 01 01 0a 00 00 00*7 02 "
                                  "02 06 00 00 80 00 03 00"));
}

TEST(RequestSense, TheDescBitSelectsTheFormat) {
  const Sense none;
  EXPECT_EQ(built([&](MutableBytes out) {
              return build_request_sense(hex("03 00 00 00 ff 00"), none, out);
            }),
            hex("70 00 00 00*4 0a 00*10"));
  EXPECT_EQ(built([&](MutableBytes out) {
              return build_request_sense(hex("03 01 00 00 ff 00"), none, out);
            }),
            hex("72 00 00 00 00*4"));
}

}  // namespace
}  // namespace sluice::scsi
