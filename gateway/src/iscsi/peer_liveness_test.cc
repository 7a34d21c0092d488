#include "iscsi/peer_liveness.h"

#include <gtest/gtest.h>

namespace sluice::iscsi {
namespace {

TEST(PeerLiveness, CountsFromTheTimeAtWhichTheConfirmedResponseWasSent) {
  PeerLiveness peer(10);
  peer.record_sent(5, 1 * kSecond);
  peer.record_sent(6, 2 * kSecond);
  peer.record_acked(5);
  EXPECT_EQ(peer.confirmed_until(), 10) << "the peer expects 5, so it has not received it";
  peer.record_acked(6);
  EXPECT_EQ(peer.confirmed_until(), 1 * kSecond);
  peer.record_acked(7);
  EXPECT_EQ(peer.confirmed_until(), 2 * kSecond);
}

TEST(PeerLiveness, ConfirmsNoLaterTimeThanTheAcknowledgedResponseHoweverManyAreSent) {
  PeerLiveness peer(0);
  Nanos now = kSecond;
  for (uint32_t sn = 0xffffff00; sn != 0x100; ++sn) peer.record_sent(sn, now += limits::kTick / 3);
  peer.record_acked(0xffffff01);
  EXPECT_EQ(peer.confirmed_until(), kSecond + limits::kTick / 3);
  peer.record_acked(0x100);
  EXPECT_LE(peer.confirmed_until(), now);
}

TEST(PeerLiveness, AnAnsweredPingConfirmsTheTimeAtWhichItWasSent) {
  PeerLiveness peer(0);
  EXPECT_FALSE(peer.answers_pings());
  peer.record_ping(7, 3 * kSecond);
  EXPECT_TRUE(peer.ping_in_flight());
  peer.record_pong(7);
  EXPECT_TRUE(peer.answers_pings());
  EXPECT_FALSE(peer.ping_in_flight());
  EXPECT_EQ(peer.confirmed_until(), 3 * kSecond);
}

TEST(PeerLiveness, TheAnswerToAnEarlierPingConfirmsNoTimeButThatThePeerAnswers) {
  PeerLiveness peer(0);
  peer.record_ping(7, 3 * kSecond);
  peer.end_ping();
  peer.record_pong(7);
  EXPECT_TRUE(peer.answers_pings());
  EXPECT_EQ(peer.confirmed_until(), 0);
  peer.record_ping(8, 4 * kSecond);
  peer.record_pong(7);
  EXPECT_TRUE(peer.ping_in_flight());
  EXPECT_EQ(peer.confirmed_until(), 0);
}

TEST(PeerLiveness, ALateConfirmationDoesNotMoveTheTimeBack) {
  PeerLiveness peer(0);
  peer.record_sent(1, 1 * kSecond);
  peer.record_ping(7, 2 * kSecond);
  peer.record_pong(7);
  peer.record_acked(2);
  EXPECT_EQ(peer.confirmed_until(), 2 * kSecond);
}

}  // namespace
}  // namespace sluice::iscsi
