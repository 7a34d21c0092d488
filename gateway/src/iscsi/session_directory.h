// Which session has which I_T nexus, over all reactors: it allocates TSIHs and enforces that an
// initiator port has one session per target portal group (RFC 7143 §6.3.5, §4.4.3 "ISID RULE").
//
// A login claims its nexus. If an older session has the nexus, that session is ended, and the claim
// is granted when its nexus has ended (DESIGN R5, R9: reinstatement waits for the commands in
// flight, except for detached ones). Claims for one nexus are granted in order.
//
// Threads: any reactor may call all members; callbacks are posted to the named reactor.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "base/reactors.h"

namespace sluice::iscsi {

struct SessionKey {
  std::string initiator;
  std::array<uint8_t, 6> isid{};
  std::string target;
  uint16_t tpgt = 1;
  uint16_t gateway = 0;  // number of the forwarding gateway; 0: the host is connected here
  auto operator<=>(const SessionKey&) const = default;
};

// Of a forwarded nexus: the incarnation of the gateway's process, and its nexus counter.
struct NexusIncarnation {
  std::string gateway;
  uint64_t nexus = 0;
};

// A connection on any reactor: the reactor and the connection's id there.
struct ConnectionHandle {
  unsigned reactor = 0;
  uint64_t id = 0;
  bool operator==(const ConnectionHandle&) const = default;
};

class SessionDirectory {
 public:
  // end(handle): the connection must end its session, and call release() when it is drained.
  // granted(handle, tsih): the claim is granted; if the connection no longer exists, the callback
  // must call release() immediately. review(handle): the connection checks the access of its
  // session again.
  struct Callbacks {
    std::function<void(ConnectionHandle)> end;
    std::function<void(ConnectionHandle, uint16_t tsih)> granted;
    std::function<void(ConnectionHandle)> review = {};
  };
  SessionDirectory(Reactors& reactors, Callbacks callbacks)
      : reactors_(reactors), callbacks_(std::move(callbacks)) {}

  // retained_tsih: the TSIH to keep for a connection reinstatement, else 0. `nexus`: incarnation of
  // a forwarded nexus.
  void claim(const SessionKey& key, ConnectionHandle who, uint16_t retained_tsih, uint16_t cid = 0,
             const NexusIncarnation& nexus = {});
  // Whether the gateway process that has this key, or waits for it, has opened a later nexus.
  bool outdated(const SessionKey& key, const NexusIncarnation& nexus) const;
  // The session (or the waiting claim) of this connection has ended, and its commands are drained.
  void release(const SessionKey& key, ConnectionHandle who);

  // Allocates a TSIH for a session without a nexus (discovery).
  uint16_t take_tsih();
  void give_back_tsih(uint16_t tsih);
  // Whether a session with this key has this TSIH (login with TSIH != 0).
  bool matches(const SessionKey& key, uint16_t tsih) const;
  // The CID of that session's connection; 0: no session.
  uint16_t cid(const SessionKey& key) const;
  // Whether this initiator port has a session with the target, through any portal (DESIGN R9).
  bool has_session(const std::string& initiator, const std::array<uint8_t, 6>& isid,
                   const std::string& target) const;
  // Number of sessions of these initiators with all targets, excluding the key `except`.
  unsigned sessions_of(const std::vector<std::string>& initiators, const SessionKey& except) const;
  // Limits the number of sessions of hosts; 0: unlimited. Any thread. A lower limit ends no
  // session.
  void limit_sessions(unsigned most) { most_sessions_ = most; }
  // The limit, if the sessions of hosts, excluding the key `except`, have reached it; else 0.
  unsigned limit_reached(const SessionKey& except) const;
  // Ends every session of a target (TARGET COLD RESET).
  void end_all(const std::string& target);
  // Call it after a change of access. Claims that are granted later check the access themselves.
  void review_all(const std::string& target);
  // Call it after a gateway was fenced: reviews the sessions that it forwards.
  void review_gateway(uint16_t gateway);

 private:
  struct Claim {
    ConnectionHandle who;
    uint16_t retained_tsih = 0;
    uint16_t cid = 0;
    NexusIncarnation nexus;
  };
  struct Slot {
    ConnectionHandle holder;
    uint16_t tsih = 0;  // 0: no session
    uint16_t cid = 0;
    NexusIncarnation nexus;
    std::deque<Claim> waiting;
  };
  void grant_locked(Slot& slot);
  void notify_holders(const std::string& target,
                      const std::function<void(ConnectionHandle)>& notify);
  uint16_t take_tsih_locked();

  Reactors& reactors_;
  Callbacks callbacks_;
  std::atomic<unsigned> most_sessions_ = 0;
  mutable std::mutex mutex_;
  std::map<SessionKey, Slot> slots_;
  std::map<uint16_t, bool> tsihs_;
  uint16_t next_tsih_ = 1;
};

}  // namespace sluice::iscsi
