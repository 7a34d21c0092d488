// The complete control room without initiator sockets: a replica, a pool on disk, units.
#pragma once

#include <gtest/gtest.h>

#include "control/client.h"
#include "control/desired_file.h"
#include "control/fake_replica.h"
#include "control/one_reactor.h"
#include "control/random_id.h"
#include "control/test_objects.h"
#include "unit/unit.h"

namespace sluice::control {

inline constexpr const char* kIqn = "iqn.2026-11.dev.sluice:t";
inline constexpr const char* kHostUid = "11111111-2222-4333-8444-555566667777";

// The gateway derives this from kVolumeUid (scsi/identity.cc).
inline constexpr const char* kNaa = "35f0c7a3e1111222";

class ClientTest : public testing::Test {
 protected:
  ~ClientTest() override {
    if (client_) client_->stop(5 * kSecond);
  }

  static wire::DesiredObject object(const std::string& id, const std::string& digest) {
    wire::DesiredObject object;
    object.set_id(id);
    object.set_digest(digest);
    return object;
  }

  std::vector<wire::DesiredObject> desired(wire::VolumeRole role, uint64_t epoch, uint64_t order) {
    wire::DesiredObject settings = object("", "s");
    settings.mutable_settings()->set_number(3);
    wire::DesiredObject listener = object("1", "l");
    listener.mutable_listener()->set_portal_group_tag(31);
    listener.mutable_listener()->set_listen("192.0.2.1:3260");
    wire::DesiredObject pool = object("pool", "p");
    pool.mutable_pool()->set_uid("pool");
    pool.mutable_pool()->mutable_local()->set_directory(pool_.path());
    wire::DesiredObject volume = object(kVolumeUid, "v" + std::to_string(order));
    wire::DesiredVolume& v = *volume.mutable_volume();
    v.set_uid(kVolumeUid);
    v.set_role(role);
    v.set_epoch(epoch);
    v.set_order(order);
    v.set_owner(3);
    v.set_pool_uid("pool");
    v.set_location("disk");
    v.set_size_bytes(1 << 20);
    v.set_block_size(512);
    v.set_naa(naa_);
    v.set_serial_number("5f0c7a3e111142228333444455556666");
    wire::DesiredObject host = object(kHostUid, "h");
    host.mutable_host()->set_uid(kHostUid);
    host.mutable_host()->add_initiators("iqn.2026-11.test:host");
    wire::DesiredObject target = target_object(kIqn, kVolumeUid, kHostUid, "t");
    target.mutable_target()->mutable_luns(0)->set_id(5);
    target.mutable_target()->mutable_access(0)->add_portals("192.0.2.1:3260,31");
    wire::DesiredPort& port = *target.mutable_target()->add_ports();
    port.set_gateway(3);
    port.set_portal_group_tag(31);
    port.set_relative_target_port_id(77);
    return {settings, listener, pool, volume, host, target};
  }

  // Writes the state that a previous process would have saved.
  void save(const std::vector<wire::DesiredObject>& objects) {
    Desired state;
    ASSERT_TRUE(state.take(full_update(9, objects)));
    ASSERT_TRUE(DesiredFile(state_.path()).save(state.held()));
  }

  static void send(ServerStream& stream, const std::vector<wire::DesiredObject>& objects,
                   uint64_t version) {
    wire::ConnectResponse response;
    *response.mutable_update() = full_update(version, objects);
    write(stream, response);
  }

  static void send_goodbye(ServerStream& stream) {
    wire::ConnectResponse response;
    response.mutable_goodbye();
    write(stream, response);
  }

  // Records the gateway's messages; answers loads with an empty state.
  void listen(ServerStream& stream) {
    wire::ConnectRequest message;
    while (stream.Read(&message)) {
      if (message.has_ack()) {
        std::string text = "ack " + std::to_string(message.ack().version());
        for (const auto& refused : message.ack().refused()) text += ": " + refused.reason();
        received_.add(text);
      }
      if (message.has_volume_observed()) {
        const wire::VolumeObserved& seen = message.volume_observed();
        received_.add("volume " + wire::VolumeState_Name(seen.state()).substr(13) + " " +
                      std::to_string(seen.epoch()) + " " + std::to_string(seen.order()) + " " +
                      seen.reason());
      }
      if (message.has_reservation_load()) {
        wire::ConnectResponse response;
        wire::ReservationState& state = *response.mutable_reservation_state();
        state.set_request_id(message.reservation_load().request_id());
        state.set_result(wire::COMMIT_RESULT_COMMITTED);
        write(stream, response);
      }
      if (message.has_pool_observed()) received_.add("pool " + message.pool_observed().uid());
      if (message.has_job_result()) received_.add("job " + message.job_result().problem());
    }
  }

  void start(const std::string& endpoint) {
    ClientSetup setup{
        .stream = {},
        .gateway = {.name = "g", .node = "n", .version = "1", .incarnation = random_id()},
        .state_directory = state_.path(),
        .state_from_disk = state_from_disk_,
        .observe_pools = observe_pools_,
        .around = {.exports = exports_,
                   .reactors = reactor_,
                   .settings = [](const wire::DesiredSettings&) { return Result<void>(); },
                   .peers = [](const std::vector<wire::DesiredPeer>&) {},
                   .open_portal =
                       [this](const wire::DesiredListener& listener) {
                         // R11: a portal opens only after the LUNs are known.
                         const auto target = exports_.find(kIqn);
                         received_.add("portal with " +
                                       std::to_string(target ? target->luns().size() : 0));
                         return Result<std::string>(listener.listen());
                       },
                   .close_portal = [](const std::string&) {},
                   .review = [this](const std::string& iqn) { reviewed_.add(iqn); }},
        .rbd = rbd_,
        .nearly_full = nullptr,
        .sessions = [] { return std::vector<iscsi::SessionView>(); },
        .evict = [](const std::vector<uint16_t>&) {},
        .peers = [] { return std::vector<wire::PeerObserved>(); },
        .busy_nanos = [] { return uint64_t{0}; }};
    setup.stream.endpoints = {endpoint};
    setup.stream.insecure_loopback = true;
    setup.stream.backoff_least = setup.stream.backoff_most = kMillisecond;
    auto client = Client::start(std::move(setup));
    ASSERT_TRUE(client) << client.error();
    client_ = std::move(client).value();
  }

  wire::ConnectResponse create_disk() const {
    wire::ConnectResponse response;
    response.mutable_job()->set_id("j");
    response.mutable_job()->set_pool_uid("pool");
    response.mutable_job()->mutable_create()->set_location("disk");
    response.mutable_job()->mutable_create()->set_size_bytes(1 << 20);
    return response;
  }

  std::string naa_ = kNaa;
  TestDirectory pool_;
  TestDirectory state_;
  lun::Exports exports_;
  OneReactor reactor_;
  Events received_;
  Events over_;
  Events reviewed_;                // targets
  std::shared_ptr<PoolKind> rbd_;  // null: without Ceph
  Nanos state_from_disk_ = 10 * kSecond;
  Nanos observe_pools_ = limits::kObservePools;
  std::unique_ptr<Client> client_;
};

}  // namespace sluice::control
