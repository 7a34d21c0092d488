#include "wire/digest.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace sluice::bench {
namespace {

std::array<uint8_t, 4> digest_of(const std::vector<uint8_t>& data) {
  std::array<uint8_t, 4> out{};
  digest_store(out.data(),
               digest_extend(kDigestStart, data.data(), static_cast<uint32_t>(data.size())));
  return out;
}

using Wire = std::array<uint8_t, 4>;

TEST(Digest, MatchesTheExamplesOfTheStandard) {  // RFC 7143 appendix A.4
  EXPECT_EQ(digest_of(std::vector<uint8_t>(32, 0x00)), (Wire{0xaa, 0x36, 0x91, 0x8a}));
  EXPECT_EQ(digest_of(std::vector<uint8_t>(32, 0xff)), (Wire{0x43, 0xab, 0xa8, 0x62}));
}

TEST(Digest, IsTheSameInPieces) {
  std::vector<uint8_t> data(1000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 7);
  uint32_t state = kDigestStart;
  state = digest_extend(state, data.data(), 333);
  state = digest_extend(state, data.data() + 333, 667);
  std::array<uint8_t, 4> out{};
  digest_store(out.data(), state);
  EXPECT_EQ(out, digest_of(data));
  EXPECT_TRUE(digest_matches(out.data(), state));
  out[2] ^= 1;
  EXPECT_FALSE(digest_matches(out.data(), state));
}

}  // namespace
}  // namespace sluice::bench
