#include "control/client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "control/client_fixture.h"
#include "control/hanging_pool.h"
#include "nexus/host_directory.h"

namespace sluice::control {
namespace {

TEST_F(ClientTest, AVolumeIsCreatedLockedServedAndReleasedAsOrdered) {
  std::atomic<bool> told{false};
  Replica replica([this, &told](const wire::StreamHello&, ServerStream& stream) {
    // The gateway reconnects after the goodbye; the script runs only once.
    if (told.exchange(true)) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "already reported");
    welcome(stream);
    std::vector<wire::DesiredObject> first = desired(wire::VOLUME_ROLE_FORWARDER, 1, 1);
    send(stream, first, 1);
    write(stream, create_disk());
    std::thread orders([&] {
      EXPECT_EQ(received_.next("portal"), "portal with 1");
      EXPECT_EQ(received_.next("ack 1"), "ack 1");
      EXPECT_EQ(received_.next("job"), "job ");
      send(stream, desired(wire::VOLUME_ROLE_ACQUIRING, 1, 2), 2);
      EXPECT_EQ(received_.next("volume"), "volume LOCKED 1 2 ");
      send(stream, desired(wire::VOLUME_ROLE_OWNER, 2, 3), 3);
      EXPECT_EQ(received_.next("volume"), "volume SERVING 2 3 ");
      send(stream, desired(wire::VOLUME_ROLE_RELEASING, 2, 4), 4);
      EXPECT_EQ(received_.next("volume"), "volume RELEASED 2 4 ");
      send_goodbye(stream);
      over_.add("over");
    });
    listen(stream);
    orders.join();
    return grpc::Status::OK;
  });
  start(replica.endpoint());
  EXPECT_EQ(over_.next("over"), "over");
}

// A removed unit must not be used again: the LUN would answer no command.
TEST_F(ClientTest, AVolumeThatIsOrderedAgainDuringItsRemovalGetsANewUnit) {
  std::atomic<bool> told{false};
  Replica replica([this, &told](const wire::StreamHello&, ServerStream& stream) {
    if (told.exchange(true)) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "already reported");
    welcome(stream);
    send(stream, desired(wire::VOLUME_ROLE_FORWARDER, 1, 1), 1);
    write(stream, create_disk());
    std::thread orders([&] {
      EXPECT_EQ(received_.next("job"), "job ");
      send(stream, desired(wire::VOLUME_ROLE_OWNER, 2, 2), 2);
      EXPECT_EQ(received_.next("volume"), "volume SERVING 2 2 ");
      std::promise<void> stands;
      reactor_.post(0, [&] { stands.get_future().wait(); });  // delays the end of the release
      std::vector<wire::DesiredObject> without = desired(wire::VOLUME_ROLE_OWNER, 2, 2);
      std::erase_if(without, [](const wire::DesiredObject& object) {
        return object.has_volume() || object.has_target();
      });
      send(stream, without, 3);
      EXPECT_EQ(received_.next("ack 3"), "ack 3");
      uint64_t version = 4;
      const auto again = [&] {
        send(stream, desired(wire::VOLUME_ROLE_OWNER, 3, version), version);
        const std::string ack = "ack " + std::to_string(version++);
        return received_.take(ack) ==
               ack;  // volumes may be served before the acknowledgement is sent
      };
      EXPECT_FALSE(again()) << "it is still leaving";
      stands.set_value();
      EXPECT_EQ(received_.next("volume"), "volume RELEASED 2 2 ");
      for (int tries = 0; tries < 1000 && !again(); ++tries) std::this_thread::yield();
      EXPECT_EQ(received_.next("volume").rfind("volume SERVING 3 ", 0), 0u);
      const auto target = exports_.find(kIqn);
      if (target && target->luns().size() == 1) {
        EXPECT_EQ(target->luns()[0].unit->gate() & lun::Unit::kRemoved, 0u);
      } else {
        ADD_FAILURE() << "the target has no LUN";
      }
      send_goodbye(stream);
      over_.add("over");
    });
    listen(stream);
    orders.join();
    return grpc::Status::OK;
  });
  start(replica.endpoint());
  EXPECT_EQ(over_.next("over"), "over");
}

// A Ceph pool connects at its first probe.
TEST_F(ClientTest, APoolIsProbedWhenItIsAddedAndWhenItsDirectoryChanges) {
  observe_pools_ = kSecond * 3600;
  const TestDirectory elsewhere;
  Replica replica([this, &elsewhere](const wire::StreamHello&, ServerStream& stream) {
    welcome(stream);
    std::vector<wire::DesiredObject> objects = desired(wire::VOLUME_ROLE_FORWARDER, 1, 1);
    send(stream, objects, 1);
    std::thread orders([&] {
      // the connection may have triggered a report already
      EXPECT_EQ(received_.next("pool"), "pool pool");
      wire::DesiredObject other = object("other", "o");
      other.mutable_pool()->set_uid("other");
      other.mutable_pool()->mutable_local()->set_directory(pool_.path());
      objects.push_back(other);
      send(stream, objects, 2);
      EXPECT_EQ(received_.next("pool other"), "pool other");
      objects.back().set_digest("changed");
      objects.back().mutable_pool()->mutable_local()->set_directory(elsewhere.path());
      send(stream, objects, 3);
      EXPECT_EQ(received_.next("pool other"), "pool other");
      over_.add("over");
    });
    listen(stream);
    orders.join();
    return grpc::Status::OK;
  });
  start(replica.endpoint());
  EXPECT_EQ(over_.next("over"), "over");
}

TEST_F(ClientTest, StopEndsInBoundedTimeAndReportsAPoolThatHangs) {
  Hang hang;
  rbd_ = std::make_shared<HangingPools>(hang);
  Replica replica([this](const wire::StreamHello&, ServerStream& stream) {
    welcome(stream);
    std::vector<wire::DesiredObject> objects = desired(wire::VOLUME_ROLE_FORWARDER, 1, 1);
    wire::DesiredObject hanging = object("hanging", "h");
    hanging.mutable_pool()->set_uid("hanging");
    hanging.mutable_pool()->mutable_rbd();
    objects.push_back(hanging);
    send(stream, objects, 1);
    listen(stream);
    return grpc::Status::OK;
  });
  start(replica.endpoint());
  hang.wait_for(1);  // the first probe
  EXPECT_FALSE(client_->stop(5 * kSecond));
  hang.release();
  client_.reset();  // waits for the probe
}

TEST_F(ClientTest, ASnapshotOfAVolumeThatAnotherGatewayOwnsIsRefused) {
  Replica replica([this](const wire::StreamHello&, ServerStream& stream) {
    welcome(stream);
    std::vector<wire::DesiredObject> objects = desired(wire::VOLUME_ROLE_FORWARDER, 1, 1);
    objects[3].mutable_volume()->set_owner(7);
    send(stream, objects, 1);
    wire::ConnectResponse response;
    wire::Job& job = *response.mutable_job();
    job.set_id("s");
    job.set_pool_uid("pool");
    job.mutable_snapshot()->set_volume_uid(kVolumeUid);
    job.mutable_snapshot()->set_location("disk");
    job.mutable_snapshot()->set_snapshot_location("snapshot");
    write(stream, response);
    listen(stream);
    return grpc::Status::OK;
  });
  start(replica.endpoint());
  EXPECT_EQ(received_.next("job"),
            "job another gateway owns the volume; its owner takes the snapshot");
}

TEST_F(ClientTest, AReadOnlyLunOfATargetIsExportedAsReadOnly) {
  Replica replica([this](const wire::StreamHello&, ServerStream& stream) {
    welcome(stream);
    std::vector<wire::DesiredObject> objects = desired(wire::VOLUME_ROLE_FORWARDER, 1, 1);
    objects[5].mutable_target()->mutable_luns(0)->set_read_only(true);
    send(stream, objects, 1);
    listen(stream);
    return grpc::Status::OK;
  });
  start(replica.endpoint());
  EXPECT_EQ(received_.next("ack 1"), "ack 1");
  const auto target = exports_.find(kIqn);
  ASSERT_NE(target, nullptr);
  ASSERT_EQ(target->luns().size(), 1u);
  EXPECT_TRUE(target->luns()[0].read_only);
}

TEST_F(ClientTest, AnObjectThatCannotBeAppliedDoesNotAffectTheOthers) {
  naa_ = "3000000000000000";
  Replica replica([this](const wire::StreamHello&, ServerStream& stream) {
    welcome(stream);
    send(stream, desired(wire::VOLUME_ROLE_FORWARDER, 1, 1), 1);
    listen(stream);
    return grpc::Status::OK;
  });
  start(replica.endpoint());
  EXPECT_EQ(received_.next("portal"), "portal with 0");
  const std::string ack = received_.next("ack 1");
  EXPECT_NE(ack.find("NAA designator is 3000000000000000"), std::string::npos) << ack;
  EXPECT_NE(ack.find("LUN 5: there is no volume"), std::string::npos) << ack;
  const auto target = exports_.find(kIqn);
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(target->relative_port_of(31), 77);
  lun::HostAccess access;
  ASSERT_TRUE(target->access_for("iqn.2026-11.test:host", &access));
  EXPECT_EQ(access.host, kHostUid);
  EXPECT_EQ(access.portals, std::vector<std::string>{"192.0.2.1:3260,31"});
}

TEST_F(ClientTest, DiscoveryIsLimitedToHostsOfTheDesiredStateWithTheirChapNames) {
  Replica replica([this](const wire::StreamHello&, ServerStream& stream) {
    welcome(stream);
    std::vector<wire::DesiredObject> objects = desired(wire::VOLUME_ROLE_FORWARDER, 1, 1);
    objects[4].mutable_host()->mutable_chap()->set_username("user");
    objects[4].mutable_host()->mutable_chap()->set_password("a secret of 16 b");
    send(stream, objects, 1);
    std::thread orders([&] {
      EXPECT_EQ(received_.next("ack 1"), "ack 1");
      const auto hosts = exports_.hosts();
      const lun::HostAccess* known = hosts ? hosts->find("iqn.2026-11.test:host") : nullptr;
      EXPECT_EQ(known ? known->chap.user : "unassigned", "user");
      EXPECT_EQ(exports_.discovery_policy(), lun::DiscoveryPolicy::kHosts);
      objects.erase(objects.begin() + 4, objects.end());
      send(stream, objects, 2);
      EXPECT_EQ(received_.next("ack 2"), "ack 2");
      EXPECT_EQ(exports_.hosts()->find("iqn.2026-11.test:host"), nullptr);
      over_.add("over");
    });
    listen(stream);
    orders.join();
    return grpc::Status::OK;
  });
  start(replica.endpoint());
  EXPECT_EQ(over_.next("over"), "over");
}

TEST_F(ClientTest, SessionsAreReviewedOnlyIfTheAccessListDiffersOrTheTargetIsRemoved) {
  Replica replica([this](const wire::StreamHello&, ServerStream& stream) {
    welcome(stream);
    std::vector<wire::DesiredObject> objects = desired(wire::VOLUME_ROLE_FORWARDER, 1, 1);
    send(stream, objects, 1);
    std::thread orders([&] {
      EXPECT_EQ(received_.next("ack 1"), "ack 1");
      objects[5].mutable_target()->mutable_luns(0)->set_read_only(true);
      objects[5].set_digest("read-only");
      send(stream, objects, 2);
      EXPECT_EQ(received_.next("ack 2"), "ack 2");
      reviewed_.add("nothing so far");
      EXPECT_EQ(reviewed_.next(""), "nothing so far");
      objects[4].mutable_host()->set_initiators(0, "iqn.2026-11.test:other");
      objects[4].set_digest("another initiator");
      send(stream, objects, 3);
      EXPECT_EQ(received_.next("ack 3"), "ack 3");
      EXPECT_EQ(reviewed_.next(""), kIqn);
      objects.pop_back();
      send(stream, objects, 4);
      EXPECT_EQ(received_.next("ack 4"), "ack 4");
      EXPECT_EQ(reviewed_.next(""), kIqn);
      over_.add("over");
    });
    listen(stream);
    orders.join();
    return grpc::Status::OK;
  });
  start(replica.endpoint());
  EXPECT_EQ(over_.next("over"), "over");
}

TEST_F(ClientTest, AStateThatFollowsAnotherImmediatelyIsOnDiskAfterStop) {
  Replica replica([this](const wire::StreamHello&, ServerStream& stream) {
    welcome(stream);
    send(stream, desired(wire::VOLUME_ROLE_FORWARDER, 1, 1), 1);
    for (Desired first; first.held().version != 1;) {
      (void)DesiredFile(state_.path()).load(&first);
    }
    send(stream, desired(wire::VOLUME_ROLE_FORWARDER, 1, 2), 2);
    listen(stream);
    return grpc::Status::OK;
  });
  start(replica.endpoint());
  received_.next("ack 2");
  client_->stop(kSecond);
  Desired saved;
  ASSERT_TRUE(DesiredFile(state_.path()).load(&saved));
  EXPECT_EQ(saved.held().version, 2u);
}

// A gateway that is killed right after the acknowledgement and restarts without a control plane
// must not admit the host again.
TEST_F(ClientTest, AChangeThatRestrictsAccessIsOnDiskBeforeItIsAcknowledged) {
  Replica replica([this](const wire::StreamHello&, ServerStream& stream) {
    welcome(stream);
    std::vector<wire::DesiredObject> objects = desired(wire::VOLUME_ROLE_FORWARDER, 1, 1);
    send(stream, objects, 1);
    std::thread orders([&] {
      EXPECT_EQ(received_.next("ack 1"), "ack 1");
      const auto on_disk = [this] {
        Desired saved;
        (void)DesiredFile(state_.path()).load(&saved);
        return saved.held();
      };
      // the next deferred write is due in 1 s
      while (on_disk().version != 1) std::this_thread::yield();
      objects[4].mutable_host()->mutable_chap()->set_username("user");
      objects[4].mutable_host()->mutable_chap()->set_password("a secret of 16 b");
      objects[4].set_digest("with a secret");
      send(stream, objects, 2);
      EXPECT_EQ(received_.next("ack 2"), "ack 2");
      const Snapshot secret = on_disk();
      EXPECT_TRUE(secret.host(kHostUid) && secret.host(kHostUid)->has_chap());
      objects.erase(objects.begin() + 4, objects.end());
      send(stream, objects, 3);
      EXPECT_EQ(received_.next("ack 3"), "ack 3");
      EXPECT_EQ(on_disk().host(kHostUid), nullptr);
      over_.add("over");
    });
    listen(stream);
    orders.join();
    return grpc::Status::OK;
  });
  start(replica.endpoint());
  EXPECT_EQ(over_.next("over"), "over");
}

TEST_F(ClientTest, WithoutAControlPlaneTheLastStateIsAppliedFromDisk) {
  save(desired(wire::VOLUME_ROLE_FORWARDER, 1, 1));
  state_from_disk_ = kMillisecond;
  start("127.0.0.1:1");
  EXPECT_EQ(received_.next("portal"), "portal with 1");
}

// Otherwise hosts would learn that a LUN in use does not exist.
TEST_F(ClientTest, APortalOpensWithTheStateOfTheControlPlaneNotWithAnOlderSavedState) {
  std::vector<wire::DesiredObject> before = desired(wire::VOLUME_ROLE_FORWARDER, 1, 1);
  before.back().mutable_target()->clear_luns();
  before.back().set_digest("before");
  save(before);
  Replica replica([this](const wire::StreamHello&, ServerStream& stream) {
    welcome(stream);
    send(stream, desired(wire::VOLUME_ROLE_FORWARDER, 1, 2), 10);
    listen(stream);
    return grpc::Status::OK;
  });
  start(replica.endpoint());
  EXPECT_EQ(received_.next("portal"), "portal with 1");
}

}  // namespace
}  // namespace sluice::control
