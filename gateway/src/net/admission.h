// How many connections there are of one kind of portal, and how many of them are in their login.
// Hosts and gateways are counted apart: hosts that nobody knows must not keep gateways from each
// other, whose refused probe reads as a death (DESIGN R1). Of those in their login no network has
// all places: whoever says nothing keeps out its own neighbours, and no other host (R14).
//
// Threads: admit() any; an Admission on its connection's reactor, or where it is let go.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

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

// One connection's place, from being accepted to its end.
class Admission {
 public:
  class Counts {
   public:
    unsigned connections() const { return connections_.load(std::memory_order_relaxed); }

   private:
    friend class Admission;
    // *all, *its: those in their login with this one, and those of its network.
    void enter(const std::string& network, unsigned* all, unsigned* its) {
      connections_.fetch_add(1, std::memory_order_relaxed);
      const std::lock_guard lock(mutex_);
      *all = ++in_login_;
      *its = ++in_login_of_[network];
    }
    void leave_login(const std::string& network) {
      const std::lock_guard lock(mutex_);
      --in_login_;
      const auto at = in_login_of_.find(network);
      if (--at->second == 0) in_login_of_.erase(at);
    }
    void leave() { connections_.fetch_sub(1, std::memory_order_relaxed); }

    std::atomic<unsigned> connections_{0};
    std::mutex mutex_;
    unsigned in_login_ = 0;
    std::map<std::string, unsigned> in_login_of_;
  };
  Admission(Counts& counts, std::string network) : counts_(counts), network_(std::move(network)) {
    counts_.enter(network_, &in_login_with_it_, &of_its_network_);
  }
  ~Admission() {
    leave_login();
    counts_.leave();
  }
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Its login was accepted, or it ends.
  void leave_login() {
    if (!in_login_) return;
    in_login_ = false;
    counts_.leave_login(network_);
  }

  // When it came: those in their login, this one among them.
  unsigned in_login_with_it() const { return in_login_with_it_; }
  unsigned of_its_network() const { return of_its_network_; }

 private:
  Counts& counts_;
  const std::string network_;
  unsigned in_login_with_it_ = 0;
  unsigned of_its_network_ = 0;
  bool in_login_ = true;
};

// Outlives what it admits.
class Admissions {
 public:
  // `of_one_network` of those that are unauthenticated may come from one network.
  Admissions(unsigned max_connections, unsigned max_unauthenticated, unsigned of_one_network)
      : max_connections_(max_connections),
        max_unauthenticated_(max_unauthenticated),
        of_one_network_(of_one_network) {}

  // nullptr: there is no place. `network`: see peer_network().
  std::shared_ptr<Admission> admit(const std::string& network) {
    // Taken first, then looked at: listeners of several reactors can't share the last one.
    auto admission = std::make_shared<Admission>(counts_, network);
    const bool fits = counts_.connections() <= max_connections_ &&
                      admission->in_login_with_it() <= max_unauthenticated_ &&
                      admission->of_its_network() <= of_one_network_;
    return fits ? admission : nullptr;
  }

 private:
  const unsigned max_connections_;
  const unsigned max_unauthenticated_;
  const unsigned of_one_network_;
  Admission::Counts counts_;
};

}  // namespace sluice::net
