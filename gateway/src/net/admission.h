// How many connections there are of one kind of portal, and how many of them are in their login.
// Hosts and gateways are counted apart: hosts that nobody knows must not keep gateways from each
// other, whose refused probe reads as a death (DESIGN R1).
//
// Threads: admit() any; an Admission on its connection's reactor, or where it is let go.
#pragma once

#include <atomic>
#include <memory>

namespace sluice::net {

// One connection's place, from being accepted to its end.
class Admission {
 public:
  struct Counts {
    std::atomic<unsigned> connections{0};
    std::atomic<unsigned> unauthenticated{0};
  };
  explicit Admission(Counts& counts) : counts_(counts) {
    counts_.connections.fetch_add(1, std::memory_order_relaxed);
    counts_.unauthenticated.fetch_add(1, std::memory_order_relaxed);
  }
  ~Admission() {
    leave_login();
    counts_.connections.fetch_sub(1, std::memory_order_relaxed);
  }
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Its login was accepted, or it ends.
  void leave_login() {
    if (!in_login_) return;
    in_login_ = false;
    counts_.unauthenticated.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  Counts& counts_;
  bool in_login_ = true;
};

// Outlives what it admits.
class Admissions {
 public:
  Admissions(unsigned max_connections, unsigned max_unauthenticated)
      : max_connections_(max_connections), max_unauthenticated_(max_unauthenticated) {}

  // nullptr: there is no place.
  std::shared_ptr<Admission> admit() {
    // Taken first, then looked at: listeners of several reactors can't share the last one.
    auto admission = std::make_shared<Admission>(counts_);
    const bool fits =
        counts_.connections.load(std::memory_order_relaxed) <= max_connections_ &&
        counts_.unauthenticated.load(std::memory_order_relaxed) <= max_unauthenticated_;
    return fits ? admission : nullptr;
  }

 private:
  const unsigned max_connections_;
  const unsigned max_unauthenticated_;
  Admission::Counts counts_;
};

}  // namespace sluice::net
