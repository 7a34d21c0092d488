// Reports sessions to the control plane: all of them after a hello, then changes. Also reports
// what hosts met.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "control/wire.h"
#include "iscsi/host_faults.h"
#include "iscsi/session_view.h"

namespace sluice::control {

class SessionReport {
 public:
  // uid of the host to which the initiator belongs at this target; empty: unknown.
  using HostOf = std::function<std::string(const std::string& iqn, const std::string& initiator)>;
  explicit SessionReport(HostOf host_of) : host_of_(std::move(host_of)) {}

  // All sessions, regardless of earlier reports. `now_ms`: milliseconds since 1970. Omits discovery
  // sessions.
  wire::SessionsObserved all(const std::vector<iscsi::SessionView>& views, int64_t now_ms);
  // Sessions that are new, changed or ended since the last report; with `counters` also those whose
  // counters changed. Empty puts and ends: no changes.
  wire::SessionsObserved changes(const std::vector<iscsi::SessionView>& views, int64_t now_ms,
                                 bool counters);
  uint32_t count() const { return static_cast<uint32_t>(reported_.size()); }

 private:
  wire::SessionObserved observe(const iscsi::SessionView& view, int64_t now_ms) const;

  const HostOf host_of_;
  std::map<uint32_t, wire::SessionObserved> reported_;  // last report, by TSIH
};

// False: hosts met no fault.
bool observe(const iscsi::HostFaultReport& report, wire::HostFaultsObserved* out);

}  // namespace sluice::control
