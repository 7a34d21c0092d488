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
  // What a session counted.
  struct Counts {
    uint64_t commands = 0;
    uint64_t reads = 0;
    uint64_t writes = 0;
    uint64_t read_bytes = 0;
    uint64_t write_bytes = 0;
    uint64_t answered = 0;
    Nanos answered_time = 0;
  };
  static Counts counts_of(const iscsi::SessionView& view);
  static void add_increase(const Counts& from, const Counts& to, wire::HostLoad* load);

  const SessionReport::HostOf host_of_;
  mutable std::mutex mutex_;
  std::map<std::string, wire::HostLoad> hosts_;  // by uid
  std::map<std::string, Counts> before_;         // by the session's TSIH and connection
};

}  // namespace sluice::control
