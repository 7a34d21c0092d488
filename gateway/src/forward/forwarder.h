// What a gateway has of this room: the links of its nexuses, a probe of every peer, the book of
// peers. nexus/ knows it as its Forwarding.
//
// Threads: open() and tick() on the reactor they are for; the peers from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/reactors.h"
#include "forward/link.h"
#include "forward/peers.h"
#include "forward/probe.h"
#include "iscsi/shard.h"

namespace sluice::forward {

class Forwarder final : public lun::Forwarding {
 public:
  // The gateway's settings, keys and randomness; its directory must be set.
  Forwarder(iscsi::Gateway& gateway, Reactors& reactors);
  ~Forwarder() override;

  // One per reactor, before anything else happens on it. `now`: its time of the present batch.
  void set_dialer(unsigned reactor, Dialer* dialer, const Nanos* now);
  Peers& peers() { return peers_; }

  std::shared_ptr<lun::Link> open(const std::shared_ptr<lun::Nexus>& nexus,
                                  uint16_t owner) override;
  // Every limits::kTick, on each reactor.
  void tick(unsigned reactor);
  // The reactor ends: its links and probes go.
  void stop(unsigned reactor);

 private:
  struct Lane {
    Dialer* dialer = nullptr;
    const Nanos* now = nullptr;
    std::vector<std::shared_ptr<LinkToOwner>> links;
    std::map<uint16_t, std::unique_ptr<Probe>> probes;  // of reactor 0
    bool stopped = false;
  };
  void peers_changed(const std::vector<Peer>& fenced);
  void look_at_peers(unsigned reactor);

  iscsi::Gateway& gateway_;
  Reactors& reactors_;
  Peers peers_;
  Surroundings around_;
  std::atomic<uint64_t> nexuses_{0};
  std::vector<Lane> lanes_;
};

}  // namespace sluice::forward
