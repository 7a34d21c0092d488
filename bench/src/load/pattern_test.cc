#include "load/pattern.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::bench {
namespace {

TEST(Pattern, IsTheSameHoweverItIsCut) {
  const Pattern pattern(3);
  std::vector<uint8_t> whole(4096);
  pattern.fill(whole.data(), 8192, 4096);
  std::vector<uint8_t> pieces(4096);
  for (uint32_t at = 0; at < 4096;) {
    const uint32_t size = std::min<uint32_t>(4096 - at, 13);
    pattern.fill(pieces.data() + at, 8192 + at, size);
    EXPECT_EQ(pattern.check(whole.data() + at, 8192 + at, size), size);
    at += size;
  }
  EXPECT_EQ(whole, pieces);
}

TEST(Pattern, AWrongByteAWrongPlaceAndAWrongSeedAllShow) {
  const Pattern pattern(3);
  std::vector<uint8_t> data(512);
  pattern.fill(data.data(), 0, 512);
  EXPECT_EQ(pattern.check(data.data(), 0, 512), 512u);
  EXPECT_EQ(pattern.check(data.data(), 512, 512), 0u);
  EXPECT_EQ(Pattern(4).check(data.data(), 0, 512), 0u);
  data[100] ^= 0x80;
  EXPECT_EQ(pattern.check(data.data(), 0, 512), 96u);  // the word that holds byte 100
}

}  // namespace
}  // namespace sluice::bench
