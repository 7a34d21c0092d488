#include "control/contact.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace sluice::control {
namespace {

constexpr uint16_t kOwner = 2;

std::vector<wire::PeerObserved> owner_is(wire::PeerReach reach) {
  wire::PeerObserved peer;
  peer.set_number(kOwner);
  peer.set_reach(reach);
  return {peer};
}

TEST(ContactTest, AGatewayIsCutOffFromAnOwnerThatItLostLongAfterItsStream) {
  Contact contact(0);
  contact.stream_opened();
  contact.stream_lost(kSecond);
  for (const wire::PeerReach lost : {wire::PEER_REACH_SILENT, wire::PEER_REACH_REFUSED}) {
    contact.reached(owner_is(lost));
    EXPECT_FALSE(contact.cut_off_from(kOwner, kSecond + limits::kCutOff - 1));
    EXPECT_TRUE(contact.cut_off_from(kOwner, kSecond + limits::kCutOff));
  }
}

TEST(ContactTest, AnOwnerThatRefusesTheLoginIsNotReached) {
  Contact contact(0);
  std::vector<wire::PeerObserved> peers = owner_is(wire::PEER_REACH_CONNECTED);
  peers[0].set_refusal("authentication failure");
  contact.reached(peers);
  EXPECT_TRUE(contact.cut_off_from(kOwner, limits::kCutOff));
}

TEST(ContactTest, AGatewayThatStartsWithoutControlPlaneCountsFromItsStart) {
  Contact contact(5 * kSecond);
  contact.reached(owner_is(wire::PEER_REACH_SILENT));
  EXPECT_FALSE(contact.cut_off_from(kOwner, limits::kCutOff));
  EXPECT_TRUE(contact.cut_off_from(kOwner, 5 * kSecond + limits::kCutOff));
}

TEST(ContactTest, FailedAttemptsToReconnectDoNotRestartTheTime) {
  Contact contact(0);
  contact.reached(owner_is(wire::PEER_REACH_SILENT));
  contact.stream_lost(limits::kCutOff - 1);
  EXPECT_TRUE(contact.cut_off_from(kOwner, limits::kCutOff));
}

TEST(ContactTest, WithAStreamOrTheOwnerAGatewayIsNotCutOff) {
  Contact contact(0);
  contact.reached(owner_is(wire::PEER_REACH_CONNECTED));
  EXPECT_FALSE(contact.cut_off_from(kOwner, 2 * limits::kCutOff));
  contact.reached({});
  EXPECT_FALSE(contact.cut_off_from(kOwner, 2 * limits::kCutOff)) << "its reach is not known";
  contact.reached(owner_is(wire::PEER_REACH_SILENT));
  EXPECT_FALSE(contact.cut_off_from(kOwner + 1, 2 * limits::kCutOff));
  contact.stream_opened();
  EXPECT_FALSE(contact.cut_off_from(kOwner, 2 * limits::kCutOff));
}

}  // namespace
}  // namespace sluice::control
