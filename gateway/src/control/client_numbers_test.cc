// LUN numbers across streams and restarts of a gateway.
#include <gtest/gtest.h>

#include <thread>

#include "control/client_fixture.h"

namespace sluice::control {
namespace {

// A control plane that was restored from a backup lacks later mappings.
TEST_F(ClientTest, ALunIsNotReusedForAnotherVolumeAfterTheControlPlaneLostItsMapping) {
  const auto state = [this](const char* shows, uint64_t order) {
    std::vector<wire::DesiredObject> objects = desired(wire::VOLUME_ROLE_FORWARDER, 1, order);
    objects.back().mutable_target()->mutable_luns(0)->set_volume_uid(shows);
    objects.back().set_digest("t" + std::to_string(order));
    return objects;
  };
  const char* other = "99999999-1111-4222-8333-444455556666";
  save(state(other, 1));
  Replica replica([this, &state, other](const wire::StreamHello&, ServerStream& stream) {
    welcome(stream);
    std::vector<wire::DesiredObject> without = state(other, 2);
    without.pop_back();
    send(stream, without, 10);
    std::thread orders([&] {
      EXPECT_EQ(received_.next("ack 10"), "ack 10");
      send(stream, state(kVolumeUid, 3), 11);
      const std::string ack = received_.next("ack 11");
      EXPECT_NE(ack.find("LUN 5: it was volume 9999"), std::string::npos) << ack;
      const auto target = exports_.find(kIqn);
      EXPECT_TRUE(target && target->luns().empty());
      std::vector<wire::DesiredObject> elsewhere = state(kVolumeUid, 4);
      elsewhere.back().mutable_target()->mutable_luns(0)->set_id(6);
      send(stream, elsewhere, 12);
      EXPECT_EQ(received_.next("ack 12"), "ack 12");
      over_.add("over");
    });
    listen(stream);
    orders.join();
    return grpc::Status::OK;
  });
  start(replica.endpoint());
  EXPECT_EQ(over_.next("over"), "over");
}

}  // namespace
}  // namespace sluice::control
