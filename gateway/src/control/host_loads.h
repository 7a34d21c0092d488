// What each host did on this gateway, for the heartbeat: the sum over its sessions. A session that
// ends leaves its counts in the sum, so that the control plane computes rates from differences.
//
// Threads: any; guarded by a mutex.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "control/sessions.h"
#include "control/wire.h"
#include "iscsi/session_view.h"

namespace sluice::control {

class HostLoads {
 public:
  explicit HostLoads(SessionReport::HostOf host_of) : host_of_(std::move(host_of)) {}

  // `views` are all sessions of the gateway. Omits discovery sessions, sessions that another
  // gateway forwards, and sessions of unknown hosts. Forgets hosts without a session.
  void observe(const std::vector<iscsi::SessionView>& views);
  // Appends the sum of each host.
  void add_to(wire::StreamHeartbeat* beat) const;

 private:
  const SessionReport::HostOf host_of_;
  mutable std::mutex mutex_;
  std::map<std::string, wire::HostLoad> hosts_;       // by uid
  std::map<std::string, iscsi::SessionView> before_;  // by the session's TSIH and connection
};

}  // namespace sluice::control
