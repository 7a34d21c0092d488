#include <gtest/gtest.h>

#include "simulation/initiator.h"

namespace sluice::simulation {
namespace {

std::vector<uint8_t> pattern(size_t n, uint8_t seed) {
  std::vector<uint8_t> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<uint8_t>(seed + i * 7 + i / 512);
  return v;
}

TEST(Session, ALargeWriteIsReadBackUnchanged) {
  SimulatedGateway gateway;
  Initiator host(gateway.connect());
  const auto login = host.login();
  ASSERT_TRUE(login);
  ASSERT_EQ(login->header.u16(36), 0);
  host.clear_attention();
  const auto data = pattern(1 << 20, 3);
  const auto written = host.execute(write16(8, 2048), 0, data);
  EXPECT_EQ(written.status, 0);
  const auto read = host.execute(read16(8, 2048), 1 << 20);
  EXPECT_EQ(read.status, 0);
  EXPECT_EQ(read.data, data);
}

}  // namespace
}  // namespace sluice::simulation
