// Everything that the gateway reports to the control plane about hosts: their sessions, the faults
// that they met, and their load.
//
// Threads: add_to() and sessions(): any. The others: one at a time, on the strand for reports of
// sessions.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/limits.h"
#include "control/host_loads.h"
#include "control/sessions.h"
#include "control/wire.h"
#include "iscsi/host_faults.h"
#include "iscsi/session_view.h"

namespace sluice::control {

class HostReports {
 public:
  struct Setup {
    iscsi::SessionLister sessions;
    // What hosts met since the last call; may be empty.
    std::function<iscsi::HostFaultReport()> faults;
    SessionReport::HostOf host_of;
  };
  explicit HostReports(Setup setup)
      : setup_(std::move(setup)), report_(setup_.host_of), loads_(setup_.host_of) {}

  // All sessions, for the beginning of a stream.
  wire::ConnectRequest all();
  // The changes since the last call; nullopt: none. Called every limits::kObserveSessions; at each
  // limits::kObservePools the counters of sessions count as changes.
  std::optional<wire::ConnectRequest> changes();
  // The faults since the last report; nullopt: none, or the last report is younger than
  // limits::kReportHostFaults. The first fault after a quiet time is reported at once.
  std::optional<wire::ConnectRequest> faults(Nanos now);
  // Appends the number of sessions, and the load of each host.
  void add_to(wire::StreamHeartbeat* beat) const;

 private:
  const Setup setup_;
  SessionReport report_;
  HostLoads loads_;
  uint64_t checks_ = 0;
  Nanos next_faults_ = 0;
  std::atomic<uint32_t> sessions_{0};
};

}  // namespace sluice::control
