#include "backend/size_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::backend {
namespace {

using testing::HasSubstr;

TEST(Size, ReadsBinaryUnitsInAnySpelling) {
  EXPECT_EQ(parse_size("4096").value(), 4096u);
  EXPECT_EQ(parse_size("512B").value(), 512u);
  EXPECT_EQ(parse_size("64KiB").value(), 65536u);
  EXPECT_EQ(parse_size("64k").value(), 65536u);
  EXPECT_EQ(parse_size("3M").value(), uint64_t{3} << 20);
  EXPECT_EQ(parse_size("1GiB").value(), uint64_t{1} << 30);
  EXPECT_EQ(parse_size("3PiB").value(), uint64_t{3} << 50);
  EXPECT_EQ(parse_size("8EiB").value(), uint64_t{8} << 60);
  EXPECT_EQ(parse_size("16TiB").value(), uint64_t{16} << 40);
  EXPECT_EQ(parse_size("18446744073709551615").value(), UINT64_MAX);
}

TEST(Size, RefusesInvalidSizes) {
  for (const char* bad : {"", "GiB", "-1", "1.5GiB", "1GB", "1 GiB", "16EiB", "1iB", "0x10",
                          "18446744073709551616", "16777216TiB", "1KiBB"}) {
    EXPECT_FALSE(parse_size(bad).ok()) << bad;
  }
  EXPECT_THAT(parse_size("1GB").error(), HasSubstr("GiB"));
}

TEST(Size, FormatsExactly) {
  EXPECT_EQ(format_size(0), "0B");
  EXPECT_EQ(format_size(1000), "1000B");
  EXPECT_EQ(format_size(1536), "1536B");
  EXPECT_EQ(format_size(uint64_t{1} << 30), "1GiB");
  EXPECT_EQ(format_size(uint64_t{2048} << 40), "2048TiB");
}

}  // namespace
}  // namespace sluice::backend
