// Which connections of one kind of portal there may be, and how many of them are in their login.
// Hosts and gateways are counted apart: hosts that nobody knows must not keep gateways from each
// other, whose refused probe reads as a death (DESIGN R1).
//
// A newcomer is admitted, and an idle connection in its login is evicted for it where there is no
// room: of its own network if that has its share, otherwise of the network that has the most. Some
// room is for known networks alone, and no stranger evicts a connection of theirs
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

// How many connections there may be of hosts and of gateways in a process that may have so many
// descriptors.
struct ConnectionBounds {
  unsigned hosts = 0;
  unsigned gateways = 0;
};

constexpr uint64_t descriptors_for(unsigned max_hosts) {
  return uint64_t{max_hosts} + limits::kMaxForwardingConnections + limits::kOtherDescriptors;
}

// All, where there is room for all. Else hosts have half of it and gateways a quarter: they must
// not take those by which volumes are opened and the control plane and peers are reached.
constexpr ConnectionBounds bound_connections(uint64_t descriptors, unsigned max_hosts) {
  const ConnectionBounds all{max_hosts, limits::kMaxForwardingConnections};
  if (descriptors >= descriptors_for(max_hosts)) return all;
  return {static_cast<unsigned>(std::min<uint64_t>(all.hosts, descriptors / 2)),
          static_cast<unsigned>(std::min<uint64_t>(all.gateways, descriptors / 4))};
}

class Admissions;

// One connection's room, from being accepted to its end.
class Admission : public std::enable_shared_from_this<Admission> {
 public:
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Its login was accepted, or it ends.
  void leave_login();
  // It has sent something: others are evicted before it.
  void progressed();
  // It has to end, and does not count among the connections in their login any more.
  bool evicted() const { return evicted_.load(std::memory_order_acquire); }
  // How long its login may take now.
  Nanos login_timeout(Nanos configured) const;
  // The reactor that the connection is on, as admit() was told.
  unsigned reactor() const { return reactor_; }
  // Set and used by that reactor alone: ends the connection.
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
  // --- under the mutex of Admissions
  bool in_login_ = false;
  uint64_t active_ = 0;  // greater: later
  std::list<Admission*>::iterator at_;
};

// Outlives what it admits.
class Admissions {
 public:
  // `of_one_network` of the `unauthenticated` may come from one network, and
  // limits::unauthenticated_reserve() is for known networks alone. `evict`: called for each
  // connection that has to end, from the thread that admits. `known`: whether a network
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

  // nullptr: there is no room, and nobody to evict for this network.
  std::shared_ptr<Admission> admit(const std::string& network, unsigned reactor);

 private:
  friend class Admission;
  struct Network {
    bool known = false;
    std::list<Admission*> in_login;  // the one idle for longest first
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
