// Reports sessions to the control plane: all after a hello, then changes. Also reports failed
// logins.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "control/wire.h"
#include "iscsi/login/login_throttle.h"
#include "iscsi/session_view.h"

namespace sluice::control {

class SessionReport {
 public:
  // Who an initiator is at a target: uid of the host, or empty.
  using HostOf = std::function<std::string(const std::string& iqn, const std::string& initiator)>;
  explicit SessionReport(HostOf host_of) : host_of_(std::move(host_of)) {}

  // All of them, whatever was told before. `now_ms`: since 1970. Discovery sessions are left out.
  wire::SessionsObserved all(const std::vector<iscsi::SessionView>& views, int64_t now_ms);
  // What is new, gone, or otherwise than told; with `counters` also what counts further. Empty puts
  // and ends: nothing.
  wire::SessionsObserved changes(const std::vector<iscsi::SessionView>& views, int64_t now_ms,
                                 bool counters);
  uint32_t count() const { return static_cast<uint32_t>(told_.size()); }

 private:
  wire::SessionObserved observe(const iscsi::SessionView& view, int64_t now_ms) const;

  const HostOf host_of_;
  std::map<uint32_t, wire::SessionObserved> told_;  // by TSIH
};

// False: nothing has failed.
bool observe(const iscsi::LoginFailureReport& report, wire::LoginFailuresObserved* out);

}  // namespace sluice::control
