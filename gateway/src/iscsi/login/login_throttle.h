// Slows down guessing of CHAP secrets, per initiator name and per address. An attacker at one
// address can't lock out a host that logs in from another address
// (gateway/decisions/session-and-login.md).
//
// Threads: any. All tables are bounded; time is passed in.
#pragma once

#include <array>
#include <mutex>
#include <string_view>

#include "base/clock.h"
#include "base/limits.h"
#include "iscsi/login/recency_table.h"

namespace sluice::iscsi {

// An initiator that logs in.
struct LoginPeer {
  std::string_view initiator;  // iSCSI name, normalized
  std::string_view network;    // kernel_address_network(), or another text instead
  std::string_view address;    // in text form, without a port
};

class LoginThrottle {
 public:
  // Whether a CHAP response of this peer is evaluated now; false: refuse it as a wrong one.
  bool may_try(const LoginPeer& peer, Nanos now);
  // An authentication failed; `evaluated` is the result of may_try(). Returns the delay of the
  // answer. The attempt counts for that time, even if the initiator does not wait for the answer:
  // correct responses are answered immediately, so a delay reveals a wrong one.
  Nanos failed(const LoginPeer& peer, bool evaluated, Nanos now);
  // A login was accepted, or a session of the peer ended.
  void succeeded(const LoginPeer& peer);

 private:
  // Evaluated attempts that failed; each counts until its answer is due.
  struct Slots {
    bool free(Nanos now) const;
    void take(Nanos now, Nanos until);
    std::array<Nanos, limits::kFailedLoginsAtOnce> busy_until{};
  };
  struct Failing {
    unsigned failures = 0;
    Nanos last = 0;
    Nanos evaluated = 0;  // time of the last evaluation
    Slots slots;
  };
  static unsigned add_failure(Failing* of, Nanos now);

  std::mutex mutex_;
  RecencyTable<Failing> networks_{limits::kMaxThrottledPeers};
  RecencyTable<Failing> initiators_{limits::kMaxThrottledPeers};
  // Initiator names, each with a network from which it has logged in.
  RecencyTable<Slots> proven_{limits::kMaxKnownNetworks};
};

}  // namespace sluice::iscsi
