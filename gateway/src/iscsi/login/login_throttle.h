// Slows guesses of CHAP secrets down, per initiator name and per address. An attacker at one
// address locks no host out that logs in from another one
// (gateway/decisions/session-and-login.md).
//
// Threads: any. All tables are bounded; time is passed in.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "iscsi/login/recency_table.h"

namespace sluice::iscsi {

// An initiator that logs in.
struct LoginPeer {
  std::string_view initiator;  // iSCSI name, normalised
  std::string_view network;    // kernel_address_network(), or any text in its place
  std::string_view address;    // as people read it, without a port
};

// Failures of one initiator name from one address since the last report.
struct LoginFailures {
  std::string initiator;
  std::string address;
  uint64_t count = 0;
};

struct LoginFailureReport {
  std::vector<LoginFailures> failures;  // at most limits::kMaxReportedFailures
  uint64_t others = 0;                  // failures of further initiators or addresses
  bool empty() const { return failures.empty() && others == 0; }
};

class LoginThrottle {
 public:
  // Whether a CHAP response of this peer is evaluated now; false: refuse it like a wrong one.
  bool may_try(const LoginPeer& peer, Nanos now);
  // An authentication failed; `evaluated` is what may_try() said. Returns how long to hold the
  // answer back. The attempt counts for so long, even if the initiator does not wait for the
  // answer: a correct response is answered at once, so silence reveals a wrong one.
  Nanos failed(const LoginPeer& peer, bool evaluated, Nanos now);
  // A login was accepted, or the session of one ended.
  void succeeded(const LoginPeer& peer);
  // Failures since the last call.
  LoginFailureReport take_report();

 private:
  // Attempts that were evaluated and failed, each until its answer is due.
  struct Slots {
    bool free(Nanos now) const;
    void take(Nanos now, Nanos until);
    std::array<Nanos, limits::kFailedLoginsAtOnce> busy_until{};
  };
  struct Failing {
    unsigned failures = 0;
    Nanos last = 0;
    Nanos evaluated = 0;  // the last time
    Slots slots;
  };
  static unsigned add_failure(Failing* of, Nanos now);
  void note(const LoginPeer& peer);

  std::mutex mutex_;
  RecencyTable<Failing> networks_{limits::kMaxThrottledPeers};
  RecencyTable<Failing> initiators_{limits::kMaxThrottledPeers};
  // Initiator names, each with a network that it has logged in from.
  RecencyTable<Slots> proven_{limits::kMaxKnownNetworks};
  LoginFailureReport report_;
};

}  // namespace sluice::iscsi
