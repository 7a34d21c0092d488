// What a host that comes by several portals learns of the target's ports (SPC-5 §6.37, §7.7.6).
#include "simulation/host_fixture.h"

namespace sluice::simulation {
namespace {

class TargetPorts : public testing::Test {
 protected:
  // One login by each portal group.
  void SetUp() override {
    gateway_.target().set_relative_ports({1, 2, 7});
    for (Initiator* h : {&first_, &second_}) {
      ASSERT_TRUE(h->login());
      h->clear_attention();
    }
  }
  // Of the one group in REPORT TARGET PORT GROUPS.
  static std::vector<uint16_t> listed(Initiator& host) {
    const Bytes page = host.execute(hex("a3 0a 00 00 00 00 00 00 10 00 00 00"), 4096).data;
    std::vector<uint16_t> ports;
    if (page.size() < 12) return ports;
    EXPECT_EQ(page.size(), 12u + 4u * page[11]);
    for (size_t at = 12; at + 4 <= page.size(); at += 4) ports.push_back(load_be16(&page[at + 2]));
    return ports;
  }
  // Relative target port designators (type 4, association 1) of VPD page 83h.
  static std::vector<uint16_t> own(Initiator& host) {
    const Bytes page = host.execute(hex("12 01 83 ff ff 00"), 65535).data;
    std::vector<uint16_t> ports;
    for (size_t at = 4; at + 8 <= page.size(); at += 4 + size_t{page[at + 3]}) {
      if ((page[at + 1] & 0x3f) == 0x14) ports.push_back(load_be16(&page[at + 6]));
    }
    return ports;
  }

  SimulatedGateway gateway_;
  Initiator first_{gateway_.connect(0, 1)};
  Initiator second_{gateway_.connect(0, 2)};
};

TEST_F(TargetPorts, TheTargetPortGroupListsAllPortsThroughEveryPort) {
  EXPECT_EQ(listed(first_), (std::vector<uint16_t>{1, 2, 7}));
  EXPECT_EQ(listed(second_), (std::vector<uint16_t>{1, 2, 7}));
}

TEST_F(TargetPorts, TheDeviceIdentificationNamesThePortOfTheRequest) {
  EXPECT_EQ(own(first_), std::vector<uint16_t>{1});
  EXPECT_EQ(own(second_), std::vector<uint16_t>{2});
}

}  // namespace
}  // namespace sluice::simulation
