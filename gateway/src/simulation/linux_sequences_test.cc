// What the Linux SCSI disk driver, the ALUA handler and multipath tools send.
#include "simulation/host_fixture.h"
#include "unit/unit.h"

namespace sluice::simulation {
namespace {

class Linux : public HostSequence {};

TEST_F(Linux, ProbesTheDiskAsSdDoes) {
  expect_good(run("12 00 00 00 24 00", 36));
  expect_good(run("12 01 00 00 ff 00", 255));
  expect_good(run("12 01 83 00 ff 00", 255));
  expect_good(run("9e 10 00 00 00 00 00 00 00 00 00 00 00 20 00 00", 32));
  const auto all_pages = run("1a 00 3f 00 04 00", 4);
  expect_good(all_pages);
  const auto caching = run("1a 00 08 00 04 00", 4);
  expect_good(caching);
  EXPECT_TRUE(caching.data[2] & 0x10) << "DPOFUA";
  for (const char* page : {"b0", "b1", "b2"}) {
    expect_good(run(std::string("12 01 ") + page + " 00 40 00", 64));
  }
}

TEST_F(Linux, FindsWriteSame16InTheSupportedOperationCodes) {
  const auto one = run("a3 0c 01 93 00 00 00 00 02 00 00 00", 512);
  expect_good(one);
  ASSERT_GE(one.data.size(), 4u);
  EXPECT_EQ(one.data[1] & 7, 3) << "supported as the standard says";
  const auto none = run("a3 0c 01 48 00 00 00 00 02 00 00 00", 512);
  expect_good(none);
  EXPECT_EQ(none.data[1] & 7, 1) << "SANITIZE is not";
}

TEST_F(Linux, AluaHandlerFindsItsGroupWithTheExtendedHeader) {
  const auto groups = run("a3 2a 00 00 00 00 00 00 01 00 00 00", 256);
  expect_good(groups);
  ASSERT_GE(groups.data.size(), 20u);
  EXPECT_EQ(groups.data[4] >> 4 & 7, 1) << "extended header";
}

TEST_F(Linux, ReceivesAUnitAttentionForAResize) {
  ASSERT_TRUE(gateway_.unit()->resize(SimulatedGateway::kLunBytes * 2).ok());
  for (Initiator* host : {&host_, &other_}) {
    expect_sense(host->execute(kTestUnitReady, 0), 6, 0x2a, 0x09);
    expect_good(host->execute(kTestUnitReady, 0));
  }
}

TEST_F(Linux, ReceivesAUnitAttentionForAddedAndRemovedLuns) {
  gateway_.target().set_luns({{0, gateway_.unit(0)}}, gateway_);
  gateway_.run();
  expect_sense(run("00 00 00 00 00 00"), 6, 0x3f, 0x0e);
  expect_sense(run("00 00 00 00 00 00", 0, {}, 1), 5, 0x25, 0x00);
  gateway_.target().set_luns({{0, gateway_.unit(0)}, {1, gateway_.unit(1)}}, gateway_);
  gateway_.run();
  expect_sense(run("00 00 00 00 00 00"), 6, 0x3f, 0x0e);
  EXPECT_EQ(load_be32(run("a0 00 00 00 00 00 00 00 10 00 00 00", 4096).data.data()), 16u);
}

TEST_F(Linux, FlushesWithSynchronizeCache) {
  expect_good(run("35 00 00 00 00 00 00 00 00 00"));
  expect_good(run("91 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"));
}

TEST_F(Linux, WarmResetEstablishesAUnitAttentionForAnotherNexus) {
  pdu::Bhs reset = host_.request(pdu::Opcode::kTaskManagementRequest, true);
  reset.set_flags(0x80 | 6);
  host_.send(reset);
  const auto answer = host_.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.u8(2), 0);
  expect_sense(run_other("00 00 00 00 00 00"), 6, 0x29, 0x03);
}

}  // namespace
}  // namespace sluice::simulation
