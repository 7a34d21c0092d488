// Logs what happens to one connection, and records the faults that its host meets (host_faults.h).
// Lines that a peer can cause again and again are limited per cause.
//
// Threads: that of the connection, which owns it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "iscsi/connection_ends.h"
#include "iscsi/host_faults.h"
#include "iscsi/login/login.h"
#include "iscsi/shard.h"

namespace sluice::iscsi {

class ConnectionJournal {
 public:
  // The names that the peer has given so far.
  struct Peer {
    std::string initiator = {};
    std::string target = {};
    bool in_session = false;
  };

  // Both outlive this object.
  ConnectionJournal(Shard& shard, const ConnectionEnds& ends) : shard_(shard), ends_(ends) {}

  void fault(Peer peer, HostFaultKind kind, std::string_view reason);
  void login_refused(Peer peer, LoginStatus status, std::string_view reason);
  void dropped(uint16_t tsih, std::string_view why);
  void session_opened(uint16_t tsih, const Parameters& p);
  void session_asked_to_leave(uint16_t tsih, const Parameters& p, std::string_view why);
  void session_over(uint16_t tsih, const Parameters& p);

 private:
  std::string cause_of(std::string_view reason) const;

  Shard& shard_;
  const ConnectionEnds& ends_;
};

}  // namespace sluice::iscsi
