#include "cluster.h"

#include <unistd.h>

#include "base/log.h"
#include "config/flags.h"
#include "control/grpc_log.h"
#include "control/random_id.h"
#include "control_rbd/rbd_pool.h"
#include "exit_codes.h"
#include "port_check.h"
#include "unit/unit.h"

namespace sluice {
namespace {

control::StreamOptions stream_options(const config::ControlPlaneConfig& config) {
  control::StreamOptions options;
  options.endpoints = config.endpoints;
  options.tls = {config.ca, config.certificate, config.key};
  options.insecure_loopback = config.insecure_loopback;
  return options;
}

control::wire::PeerReach reach_of(forward::Reach reach) {
  switch (reach) {
    case forward::Reach::kConnected:
      return control::wire::PEER_REACH_CONNECTED;
    case forward::Reach::kRefused:
      return control::wire::PEER_REACH_REFUSED;
    case forward::Reach::kSilent:
      return control::wire::PEER_REACH_SILENT;
    case forward::Reach::kUnknown:
      break;
  }
  return control::wire::PEER_REACH_UNSPECIFIED;
}

control::wire::PeerObserved observed(uint16_t number, const std::string& incarnation,
                                     const forward::Peers::Finding& found) {
  control::wire::PeerObserved out;
  out.set_number(number);
  out.set_incarnation(incarnation);
  out.set_reach(reach_of(found.reach));
  out.set_silent_ms(found.silent_ms);
  out.set_refusal(found.refusal);
  return out;
}

std::vector<control::wire::PeerObserved> peers_found(net::Engine& engine) {
  std::vector<control::wire::PeerObserved> all;
  for (const forward::Peer& peer : engine.peers().all()) {
    const forward::Peers::Finding found = engine.peers().finding(peer.number);
    if (found.reach == forward::Reach::kUnknown) continue;
    all.push_back(observed(peer.number, peer.incarnation, found));
  }
  return all;
}

template <class Keys>
std::vector<iscsi::ForwardingKey> keys_of(const Keys& keys) {
  std::vector<iscsi::ForwardingKey> out;
  for (const auto& key : keys) out.push_back({key.id(), key.key()});
  return out;
}

void set_peers(net::Engine& engine, const std::vector<control::wire::DesiredPeer>& desired) {
  std::vector<forward::Peer> peers;
  std::vector<iscsi::KnownPeer> known;
  peers.reserve(desired.size());
  std::vector<std::string> addresses;
  for (const auto& peer : desired) {
    known.push_back({.number = static_cast<uint16_t>(peer.number()),
                     .incarnation = peer.incarnation(),
                     .accepted = keys_of(peer.accepted_keys()),
                     .own = keys_of(peer.own_keys())});
    peers.push_back({.number = static_cast<uint16_t>(peer.number()),
                     .incarnation = peer.incarnation(),
                     .address = peer.forwarding_address(),
                     .fenced = peer.fenced(),
                     .node = peer.node()});
    addresses.push_back(peer.forwarding_address());
  }
  engine.forwarding().set_peers(known);
  engine.expect_gateways(addresses);
  engine.peers().set(peers);
}

// Who we are to other gateways, what we all prove ourselves with, and our port for them.
class ForwardingPort {
 public:
  ForwardingPort(net::Engine& engine, std::string incarnation)
      : engine_(engine), incarnation_(std::move(incarnation)) {}

  Result<void> set(const control::wire::DesiredSettings& settings) {
    engine_.forwarding().set_keys(keys_of(settings.forwarding_keys()));
    engine_.forwarding().set_identity({static_cast<uint16_t>(settings.number()), incarnation_});
    if (settings.forwarding_listen() == address_) return {};
    if (!bound_.empty()) engine_.close_portals({bound_});
    bound_.clear();
    address_ = settings.forwarding_listen();
    if (address_.empty()) return {};
    const Result<void> open = engine_.listen({{.address = address_, .forwarding = true}});
    if (!open) {
      // A killed predecessor's port lives on for some milliseconds: it is tried again.
      address_.clear();
      return Error{"the port for other gateways: " + open.error()};
    }
    bound_ = engine_.addresses().back();
    log::info("port for other gateways open", {{"address", bound_}});
    return {};
  }

 private:
  net::Engine& engine_;
  const std::string incarnation_;
  std::string address_;
  std::string bound_;
};

control::Surroundings surroundings(lun::Exports& exports, net::Engine& engine,
                                   const std::string& incarnation) {
  auto port = std::make_shared<ForwardingPort>(engine, incarnation);
  return {
      .exports = exports,
      .reactors = engine.reactors(),
      .settings =
          [port, &engine](const control::wire::DesiredSettings& settings) {
            engine.limit_sessions(settings.max_sessions());
            return port->set(settings);
          },
      .peers =
          [&engine](const std::vector<control::wire::DesiredPeer>& peers) {
            set_peers(engine, peers);
          },
      .open_portal =
          [&engine](const control::wire::DesiredListener& listener) -> Result<std::string> {
        const auto tag = static_cast<uint16_t>(listener.portal_group_tag());
        const Result<void> open =
            engine.listen({{.address = listener.listen(), .tpgt = tag, .relative_port = tag}});
        if (!open) return Error{open.error()};
        return engine.addresses().back();
      },
      .close_portal = [&engine](const std::string& bound) { engine.close_portals({bound}); },
      .review = [&engine](const std::string& iqn) { engine.review_access(iqn); },
  };
}

// It is fenced (DESIGN R4): it answers nothing more, and its ports close with it. An orderly stop
// would answer commands that the other process may have executed by now.
void end_replaced(const std::string& why) {
  log::error("another process has replaced this one as the gateway: this process ends",
             {{"reason", why}, {"exit_code", kReplaced}});
  log::stop();
  ::_exit(kReplaced);
}

}  // namespace

Result<std::unique_ptr<control::Client>> join_cluster(const config::Config& config,
                                                      lun::Exports& exports, net::Engine& engine) {
  control::log_grpc_lines();
  const std::string incarnation = control::random_id();
  control::ClientSetup setup{
      .stream = stream_options(config.control_plane),
      .gateway = {.name = config.control_plane.gateway,
                  .node = config.control_plane.node,
                  .version = std::string(config::version()),
                  .incarnation = incarnation},
      .state_directory = config.state_directory,
      .device_records = config.control_plane.device_records,
      .around = surroundings(exports, engine, incarnation),
      .rbd = control::rbd_pools(),
      .nearly_full = lun::tell_threshold_reached,
      .sessions = [&engine] { return engine.sessions(); },
      .evict = [&engine](const std::vector<uint16_t>& tsihs) { engine.evict(tsihs); },
      .peers = [&engine] { return peers_found(engine); },
      .busy_nanos = [&engine] { return engine.counters().total().busy_nanos; },
      .ports_in_use =
          [&engine](const std::vector<std::string>& addresses) {
            return ports_in_use(addresses, engine.addresses());
          },
      .replaced = end_replaced,
      .host_faults = [&engine] { return engine.host_faults(); }};
  log::info("gateway of a cluster", {{"gateway", setup.gateway.name},
                                     {"node", setup.gateway.node},
                                     {"incarnation", setup.gateway.incarnation}});
  auto client = control::Client::start(std::move(setup));
  if (!client) return Error{client.error()};
  // Callbacks come from reactors, which are gone before the client is (main.cc).
  engine.peers().set_on_reach(
      [client = client.value().get()](uint16_t number, const std::string& of,
                                      const forward::Peers::Finding& found) {
        client->peer_found(observed(number, of, found));
      });
  return std::move(client).value();
}

}  // namespace sluice
