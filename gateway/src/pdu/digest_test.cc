#include "pdu/digest.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace sluice::pdu {
namespace {

// RFC 7143 appendix B.4 ("CRC Examples"): the bytes on the wire, in order.
struct Example {
  const char* name;
  std::vector<uint8_t> data;
  std::array<uint8_t, 4> wire;
};

std::vector<Example> examples() {
  std::vector<uint8_t> rising(32);
  std::iota(rising.begin(), rising.end(), uint8_t{0});
  return {{"32 bytes of zeros", std::vector<uint8_t>(32, 0x00), {0xaa, 0x36, 0x91, 0x8a}},
          {"32 bytes of ones", std::vector<uint8_t>(32, 0xff), {0x43, 0xab, 0xa8, 0x62}},
          {"32 rising bytes", rising, {0x4e, 0x79, 0xdd, 0x46}},
          {"32 falling bytes", {rising.rbegin(), rising.rend()}, {0x5c, 0xdb, 0x3f, 0x11}}};
}

TEST(Digest, MatchesTheExamplesOfRfc7143) {
  for (const Example& e : examples()) {
    Digest d;
    d.update(e.data.data(), static_cast<uint32_t>(e.data.size()));
    uint8_t wire[4];
    d.store(wire);
    EXPECT_EQ((std::array<uint8_t, 4>{wire[0], wire[1], wire[2], wire[3]}), e.wire) << e.name;
    EXPECT_TRUE(d.matches(e.wire.data())) << e.name;
  }
}

TEST(Digest, DoesNotDependOnTheSegmentationOfTheData) {
  const auto data = examples()[2].data;
  for (uint32_t cut = 0; cut <= data.size(); ++cut) {
    Digest d;
    d.update(data.data(), cut);
    d.update(data.data() + cut, static_cast<uint32_t>(data.size()) - cut);
    EXPECT_TRUE(d.matches(examples()[2].wire.data())) << cut;
  }
}

TEST(Digest, DetectsOneFlippedBit) {
  auto data = examples()[0].data;
  data[17] ^= 0x04;
  Digest d;
  d.update(data.data(), static_cast<uint32_t>(data.size()));
  EXPECT_FALSE(d.matches(examples()[0].wire.data()));
}

}  // namespace
}  // namespace sluice::pdu
