#include "iscsi/early_requests.h"

#include <gtest/gtest.h>

namespace sluice::iscsi {
namespace {

pdu::Pdu request(pdu::Opcode opcode, uint32_t cmd_sn, uint32_t itt, uint32_t data = 0) {
  pdu::Pdu pdu;
  pdu.header.set_opcode(opcode);
  pdu.header.put32(24, cmd_sn);
  pdu.header.set_itt(itt);
  pdu.data_size = data;
  return pdu;
}
pdu::Pdu command(uint32_t cmd_sn, uint32_t itt, uint32_t data = 0) {
  return request(pdu::Opcode::kScsiCommand, cmd_sn, itt, data);
}

TEST(EarlyRequests, AreReturnedOnceByCmdSnAndDuplicatesAreIgnored) {
  EarlyRequests early;
  EXPECT_TRUE(early.empty());
  ASSERT_TRUE(early.add(command(7, 70), 1));
  ASSERT_TRUE(early.add(command(6, 60), 2));
  ASSERT_TRUE(early.add(command(7, 71), 3));
  EXPECT_FALSE(early.take(5));
  const auto first = early.take(6);
  ASSERT_TRUE(first && first->pdu);
  EXPECT_EQ(first->pdu->header.itt(), 60u);
  EXPECT_EQ(first->arrived, 2);
  const auto second = early.take(7);
  ASSERT_TRUE(second && second->pdu);
  EXPECT_EQ(second->pdu->header.itt(), 70u) << "the duplicate must not replace it";
  EXPECT_TRUE(early.empty());
}

TEST(EarlyRequests, RefuseDataAboveTheirLimitUntilOthersAreRemoved) {
  EarlyRequests early;
  constexpr auto kHalf = static_cast<uint32_t>(EarlyRequests::kBytes / 2);
  ASSERT_TRUE(early.add(command(1, 1, kHalf), 0));
  ASSERT_TRUE(early.add(command(2, 2, kHalf), 0));
  EXPECT_FALSE(early.add(command(3, 3, 1), 0));
  early.cancel(1);
  ASSERT_TRUE(early.add(command(3, 3, kHalf), 0));
  EXPECT_FALSE(early.add(command(4, 4, 1), 0));
  early.take(2);
  EXPECT_TRUE(early.add(command(4, 4, kHalf), 0));
  early.clear();
  EXPECT_TRUE(early.empty());
  EXPECT_TRUE(early.add(command(5, 5, kHalf), 0));
  EXPECT_TRUE(early.add(command(6, 6, kHalf), 0));
}

TEST(EarlyRequests, CancelledRequestsCountAsReceivedEvenBeforeTheyArrive) {
  EarlyRequests early;
  ASSERT_TRUE(early.add(command(3, 30), 0));
  early.cancel(3);
  early.cancel(4);
  ASSERT_TRUE(early.add(command(4, 40), 0)) << "a duplicate of a number that was received";
  for (const uint32_t cmd_sn : {3u, 4u}) {
    EXPECT_TRUE(early.contains(cmd_sn));
    const auto taken = early.take(cmd_sn);
    ASSERT_TRUE(taken);
    EXPECT_FALSE(taken->pdu) << cmd_sn;
  }
}

TEST(EarlyRequests, OnlyOlderMatchingCommandsAreCancelled) {
  EarlyRequests early;
  ASSERT_TRUE(early.add(command(0xffffffff, 1), 0));
  ASSERT_TRUE(early.add(command(0, 2), 0));
  ASSERT_TRUE(early.add(command(1, 3), 0));
  ASSERT_TRUE(early.add(request(pdu::Opcode::kNopOut, 2, 4), 0));
  ASSERT_TRUE(early.add(command(3, 5), 0));
  early.cancel_commands(3, [](const pdu::Bhs& h) { return h.itt() != 2; });
  EXPECT_FALSE(early.cmd_sn_of(1)) << "older, also across the wrap of the numbers";
  EXPECT_EQ(early.cmd_sn_of(2), 0u) << "it does not match";
  EXPECT_FALSE(early.cmd_sn_of(3));
  EXPECT_FALSE(early.cmd_sn_of(4)) << "no SCSI command";
  EXPECT_EQ(early.cmd_sn_of(5), 3u) << "not older";
  EXPECT_TRUE(early.take(2)->pdu);
}

}  // namespace
}  // namespace sluice::iscsi
