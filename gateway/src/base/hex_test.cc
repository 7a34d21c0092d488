#include "base/hex.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice {
namespace {

TEST(Hex, ADigitHasItsValueInBothCases) {
  EXPECT_EQ(hex_value('0'), 0);
  EXPECT_EQ(hex_value('9'), 9);
  EXPECT_EQ(hex_value('a'), 10);
  EXPECT_EQ(hex_value('F'), 15);
  for (const char c : {'g', 'G', '/', ':', '@', '`', '\0'}) EXPECT_EQ(hex_value(c), -1) << c;
}

TEST(Hex, BytesAndNumbersAreWrittenInLowerCase) {
  EXPECT_EQ(hex_text(std::vector<uint8_t>{0x00, 0x0a, 0xbc, 0xff}), "000abcff");
  EXPECT_EQ(hex_text({}), "");
  EXPECT_EQ(hex_number(0xabc, 8), "00000abc");
  EXPECT_EQ(hex_number(0x12345, 4), "2345");
}

TEST(Hex, AUuidHasFourDashes) {
  EXPECT_EQ(uuid_text({0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0, 1, 2, 3, 4, 5, 6, 7}),
            "01234567-89ab-cdef-0001-020304050607");
}

TEST(Hex, AUuidIsReadInBothCasesAndRefusedInAnotherForm) {
  const auto uuid = uuid_of("01234567-89AB-cdef-0001-020304050607");
  ASSERT_TRUE(uuid);
  EXPECT_EQ(uuid_text(*uuid), "01234567-89ab-cdef-0001-020304050607");
  for (const char* text :
       {"", "0123456789abcdef0001020304050607", "01234567-89ab-cdef-0001-02030405060",
        "01234567-89ab-cdef-0001-0203040506070", "01234567-89ab-cdef-0001-02030405060g",
        "0123456-789ab-cdef-0001-020304050607"}) {
    EXPECT_FALSE(uuid_of(text)) << text;
  }
}

}  // namespace
}  // namespace sluice
