// The gateway's use of this room: the links of its nexuses, a probe of every peer, the list of
// peers. It implements nexus/'s Forwarding.
//
// Threads: open() and tick() on the reactor that they concern; the peers on any thread.
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
  // Uses the gateway's settings, keys and random bytes; its directory must be set.
  Forwarder(iscsi::Gateway& gateway, Reactors& reactors);
  ~Forwarder() override;

  // One per reactor, before anything else happens on it. `now`: the reactor's time of the batch.
  void set_dialer(unsigned reactor, Dialer* dialer, const Nanos* now);
  Peers& peers() { return peers_; }

  std::shared_ptr<lun::Link> open(const std::shared_ptr<lun::Nexus>& nexus,
                                  uint16_t owner) override;
  // Call it every limits::kTick on each reactor.
  void tick(unsigned reactor);
  // The reactor ends: destroys its links and probes.
  void stop(unsigned reactor);

 private:
  struct Shard {
    Dialer* dialer = nullptr;
    const Nanos* now = nullptr;
    std::vector<std::shared_ptr<LinkToOwner>> links;
    std::map<uint16_t, std::unique_ptr<Probe>> probes;  // on reactor 0
    bool stopped = false;
  };
  void peers_changed(const std::vector<Peer>& fenced);
  void check_peers(unsigned reactor);

  iscsi::Gateway& gateway_;
  Reactors& reactors_;
  Peers peers_;
  Surroundings around_;
  std::atomic<uint64_t> nexuses_{0};
  std::vector<Shard> shards_;
};

}  // namespace sluice::forward
