// More than a limited volume allows, forwarded to its owner.
#include <gtest/gtest.h>

#include "simulation/gateway_pair.h"
#include "simulation/initiator.h"
#include "unit/bandwidth.h"
#include "unit/unit.h"

namespace sluice::simulation {
namespace {

const Nanos* owners_time = nullptr;

// As stale, each would come back to the end of the owner's queue and take bandwidth in vain.
TEST(ForwardingLimit, CommandsBeyondTheRateContinueAtTheRateWithoutAnUnavailableVolume) {
  GatewayPair pair;
  owners_time = &pair.owner.shard().now;
  pair.owner.shard().context.clock = [] { return *owners_time; };
  const auto nexus = pair.open_nexus();
  ASSERT_EQ(pair.run(*nexus, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
  pair.owner.unit()->set_qos({.iops = 10, .iops_burst = 1});
  constexpr unsigned kDepth = 64;  // more than a token's life lets through
  std::vector<std::shared_ptr<ForwardedCommand>> open;
  unsigned good = 0;
  for (int round = 0; round < 60; ++round) {
    while (open.size() < kDepth) {
      open.push_back(pair.command(read16(0, 8), 4096));
      pair.begin(*nexus, *open.back());
    }
    pair.advance(limits::kTick);
    std::erase_if(open, [&good](const auto& c) {
      if (!c->ended) return false;
      EXPECT_FALSE(c->unavailable());
      const bool ok = c->command.status == scsi::Status::kGood;
      EXPECT_TRUE(ok || c->command.status == scsi::Status::kTaskSetFull);
      good += ok;
      return true;
    });
  }
  EXPECT_GE(good, 50u);
}

}  // namespace
}  // namespace sluice::simulation
