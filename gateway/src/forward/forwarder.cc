#include "forward/forwarder.h"

#include <algorithm>

#include "iscsi/session_directory.h"

namespace sluice::forward {

Forwarder::Forwarder(iscsi::Gateway& gateway, Reactors& reactors)
    : gateway_(gateway), reactors_(reactors), shards_(limits::kMaxReactors) {
  around_.peers = &peers_;
  around_.access = &gateway.forwarding;
  around_.random = gateway.random;
  around_.offer = gateway.settings.offer;
  peers_.set_on_change([this](const std::vector<Peer>& fenced) { peers_changed(fenced); });
}

Forwarder::~Forwarder() { peers_.set_on_change(nullptr); }

void Forwarder::set_dialer(unsigned reactor, Dialer* dialer, const Nanos* now) {
  shards_[reactor].dialer = dialer;
  shards_[reactor].now = now;
}

std::shared_ptr<lun::Link> Forwarder::open(const std::shared_ptr<lun::Nexus>& nexus,
                                           uint16_t owner) {
  Shard& shard = shards_[nexus->reactor_context().reactor];
  std::optional<Peer> peer = peers_.find(owner);
  if (nexus->forwarded()) return nullptr;  // DESIGN R1: never again
  if (shard.stopped || !peer || peer->fenced || owner == gateway_.forwarding.identity().number) {
    return nullptr;
  }
  auto link = std::make_shared<LinkToOwner>(around_, *shard.dialer, nexus, std::move(*peer),
                                            nexuses_.fetch_add(1) + 1);
  shard.links.push_back(link);
  return link;
}

void Forwarder::tick(unsigned reactor) {
  Shard& shard = shards_[reactor];
  // By index: what ends in a tick may open links.
  for (size_t i = 0; i < shard.links.size(); ++i) {
    const std::shared_ptr<LinkToOwner> link = shard.links[i];
    link->tick();
  }
  std::erase_if(shard.links, [](const auto& link) { return link->over(); });
  for (const auto& [number, probe] : shard.probes) probe->tick();
}

void Forwarder::stop(unsigned reactor) {
  shards_[reactor].stopped = true;
  shards_[reactor].links.clear();
  shards_[reactor].probes.clear();
}

void Forwarder::peers_changed(const std::vector<Peer>& fenced) {
  for (const Peer& peer : fenced) {
    if (!gateway_.forwarding.fence(peer.number, peer.incarnation)) continue;
    gateway_.directory->review_gateway(peer.number);
  }
  for (const Peer& peer : peers_.all()) {
    if (!peer.fenced) gateway_.forwarding.lift(peer.number, peer.incarnation);
  }
  for (const uint16_t number : gateway_.forwarding.take_revoked()) {
    gateway_.directory->review_gateway(number);
  }
  for (unsigned i = 0; i < reactors_.count(); ++i) {
    reactors_.post(i, [this, i] { check_peers(i); });
  }
}

void Forwarder::check_peers(unsigned reactor) {
  Shard& shard = shards_[reactor];
  if (shard.stopped) return;
  for (size_t i = 0; i < shard.links.size(); ++i) {
    const std::shared_ptr<LinkToOwner> link = shard.links[i];
    link->check_owner();
  }
  if (reactor != 0) return;
  const uint16_t self = gateway_.forwarding.identity().number;
  std::map<uint16_t, std::unique_ptr<Probe>> remaining;
  for (const Peer& peer : peers_.all()) {
    if (peer.fenced || peer.address.empty() || peer.number == self) continue;
    std::unique_ptr<Probe>& mine = shard.probes[peer.number];
    if (!mine || mine->peer() != peer) {
      mine = std::make_unique<Probe>(around_, *shard.dialer, peer, shard.now);
    }
    remaining[peer.number] = std::move(mine);
  }
  shard.probes = std::move(remaining);
}

}  // namespace sluice::forward
