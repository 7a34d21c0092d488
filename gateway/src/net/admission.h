// Limits the connections of one kind of portal, and how many of them are in their login. Hosts and
// gateways are counted separately: unknown hosts must not block connections between gateways,
// because a refused probe counts as the peer's death (DESIGN R1).
//
// A new connection is admitted. If there is no room, an idle connection in its login is evicted:
// one of the same network if that has used its share, otherwise one of the network with the most.
// Some room is reserved for known networks, and an unknown network never evicts their connections
// (gateway/decisions/session-and-login.md).
//
// Threads: any.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/limits.h"

namespace sluice::net {

// The maximum numbers of connections from hosts and gateways, for a number of descriptors that the
// process may have.
struct ConnectionBounds {
  unsigned hosts = 0;
  unsigned gateways = 0;
};

constexpr uint64_t descriptors_for(unsigned max_hosts) {
  return uint64_t{max_hosts} + limits::kMaxForwardingConnections + limits::kOtherDescriptors;
}

// The full numbers if the descriptors suffice. Otherwise hosts get half of the descriptors and
// gateways a quarter: the rest is needed for volumes, the control plane and peers.
constexpr ConnectionBounds bound_connections(uint64_t descriptors, unsigned max_hosts) {
  const ConnectionBounds all{max_hosts, limits::kMaxForwardingConnections};
  if (descriptors >= descriptors_for(max_hosts)) return all;
  return {static_cast<unsigned>(std::min<uint64_t>(all.hosts, descriptors / 2)),
          static_cast<unsigned>(std::min<uint64_t>(all.gateways, descriptors / 4))};
}

class Admissions;

// The admission of one connection, from accept to its end.
class Admission : public std::enable_shared_from_this<Admission> {
 public:
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Its login was accepted, or it ends.
  void leave_login();
  // It has sent something: less active connections are evicted before it.
  void progressed();
  // It must end, and no longer counts among the connections in their login.
  bool evicted() const { return evicted_.load(std::memory_order_acquire); }
  // The current time limit of its login.
  Nanos login_timeout(Nanos configured) const;
  // The reactor of the connection, as passed to admit().
  unsigned reactor() const { return reactor_; }
  // Only that reactor sets and calls it: ends the connection.
  std::function<void()> on_evict;

 private:
  friend class Admissions;
  Admission(Admissions& all, std::string network, bool known, unsigned reactor)
      : all_(all), network_(std::move(network)), known_(known), reactor_(reactor) {}

  Admissions& all_;
  const std::string network_;
  const bool known_;
  const unsigned reactor_;
  std::atomic<bool> evicted_{false};
  // --- protected by the mutex of Admissions
  bool in_login_ = false;
  uint64_t active_ = 0;  // a greater value is more recent
  std::list<Admission*>::iterator at_;
};

// Must outlive what it admits.
class Admissions {
 public:
  // One network may have `of_one_network` of the `unauthenticated` connections, and
  // limits::unauthenticated_reserve() is reserved for known networks. `evict`: called for each
  // connection that must end, on the thread that admits. `known`: whether a network
  // (peer_network()) is known.
  Admissions(unsigned connections, unsigned unauthenticated, unsigned of_one_network,
             std::function<bool(std::string_view)> known,
             std::function<void(std::shared_ptr<Admission>)> evict)
      : max_connections_(connections),
        max_unauthenticated_(unauthenticated),
        of_one_network_(of_one_network),
        reserve_(limits::unauthenticated_reserve(unauthenticated)),
        known_(std::move(known)),
        evict_(std::move(evict)) {}

  // nullptr: there is no room, and no connection that this network may evict.
  std::shared_ptr<Admission> admit(const std::string& network, unsigned reactor);

 private:
  friend class Admission;
  struct Network {
    bool known = false;
    std::list<Admission*> in_login;  // the one that was idle longest first
  };
  using Networks = std::map<std::string, Network>;

  bool full_for(bool known) const;
  Admission* victim(const std::string& network, bool known);
  Admission* oldest_of_most(const std::string& newcomer, bool known);
  void enter(Admission& one);
  void leave(Admission& one);

  const unsigned max_connections_;
  const unsigned max_unauthenticated_;
  const unsigned of_one_network_;
  const unsigned reserve_;
  const std::function<bool(std::string_view)> known_;
  const std::function<void(std::shared_ptr<Admission>)> evict_;
  std::mutex mutex_;
  unsigned connections_ = 0;
  std::atomic<unsigned> in_login_{0};  // written under the mutex
  unsigned strangers_in_login_ = 0;
  uint64_t activity_ = 0;
  Networks networks_;
};

}  // namespace sluice::net
