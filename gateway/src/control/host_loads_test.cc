#include "control/host_loads.h"

#include <gtest/gtest.h>

namespace sluice::control {
namespace {

using iscsi::SessionView;

SessionView session(uint16_t tsih, const std::string& initiator) {
  SessionView view;
  view.tsih = tsih;
  view.initiator_address = "192.0.2.7:5" + std::to_string(tsih);
  view.parameters.target_name = "iqn.2026-11.example:t";
  view.parameters.initiator_name = initiator;
  return view;
}

class HostLoadsTest : public ::testing::Test {
 protected:
  // Loads after `views` were observed.
  std::vector<wire::HostLoad> observe(const std::vector<SessionView>& views) {
    loads_.observe(views);
    wire::StreamHeartbeat beat;
    loads_.add_to(&beat);
    return {beat.host_loads().begin(), beat.host_loads().end()};
  }

  HostLoads loads_{[](const std::string&, const std::string& initiator) {
    return initiator == "stranger" ? "" : "uid-" + initiator;
  }};
};

TEST_F(HostLoadsTest, SumsTheSessionsOfEachHost) {
  SessionView one = session(1, "a");
  one.commands = 10;
  one.reads = 4;
  one.writes = 5;
  one.in_flight = 2;
  one.answered = 8;
  one.answered_time = 800;
  one.data_in_bytes = 4096;
  one.data_out_bytes = 512;
  SessionView two = session(2, "a");
  two.commands = 3;
  two.reads = 3;
  two.in_flight = 1;
  SessionView other = session(3, "b");
  other.commands = 1;

  const auto loads = observe({one, two, other});

  ASSERT_EQ(loads.size(), 2u);
  EXPECT_EQ(loads[0].host_uid(), "uid-a");
  EXPECT_EQ(loads[0].sessions(), 2u);
  EXPECT_EQ(loads[0].reads(), 7u);
  EXPECT_EQ(loads[0].writes(), 5u);
  EXPECT_EQ(loads[0].others(), 1u);
  EXPECT_EQ(loads[0].in_progress(), 3u);
  EXPECT_EQ(loads[0].answered(), 8u);
  EXPECT_EQ(loads[0].answered_time_ns(), 800u);
  EXPECT_EQ(loads[0].read_bytes(), 4096u);
  EXPECT_EQ(loads[0].write_bytes(), 512u);
  EXPECT_EQ(loads[1].host_uid(), "uid-b");
  EXPECT_EQ(loads[1].others(), 1u);
}

TEST_F(HostLoadsTest, CountsNeverDecreaseWhenASessionEndsAndItsTsihIsReused) {
  SessionView kept = session(1, "a");
  SessionView ends = session(2, "a");
  ends.commands = ends.reads = 100;
  observe({kept, ends});
  EXPECT_EQ(observe({kept})[0].reads(), 100u);

  SessionView next = session(2, "a");
  next.initiator_address = "192.0.2.8:9";
  next.commands = next.reads = 7;
  const auto loads = observe({kept, next});
  EXPECT_EQ(loads[0].reads(), 107u);
  EXPECT_EQ(loads[0].sessions(), 2u);
}

TEST_F(HostLoadsTest, OmitsDiscoveryForwardedSessionsAndStrangersAndForgetsHostsWithoutASession) {
  SessionView discovery = session(1, "a");
  discovery.parameters.discovery = true;
  SessionView forwarded = session(2, "a");
  forwarded.parameters.forwarded_by = 3;
  EXPECT_TRUE(observe({discovery, forwarded, session(3, "stranger")}).empty());

  SessionView one = session(4, "a");
  one.commands = one.reads = 9;
  EXPECT_EQ(observe({one}).size(), 1u);
  EXPECT_TRUE(observe({}).empty());
}

}  // namespace
}  // namespace sluice::control
