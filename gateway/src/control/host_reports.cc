#include "control/host_reports.h"

#include <chrono>
#include <utility>
#include <vector>

namespace sluice::control {
namespace {

int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

wire::ConnectRequest HostReports::all() {
  wire::ConnectRequest m;
  *m.mutable_sessions_observed() = report_.all(setup_.sessions(), now_ms());
  return m;
}

std::optional<wire::ConnectRequest> HostReports::changes() {
  const bool counters = ++checks_ % (limits::kObservePools / limits::kObserveSessions) == 0;
  const std::vector<iscsi::SessionView> views = setup_.sessions();
  wire::ConnectRequest m;
  *m.mutable_sessions_observed() = report_.changes(views, now_ms(), counters);
  loads_.observe(views);
  sessions_ = report_.count();
  const wire::SessionsObserved& changes = m.sessions_observed();
  if (changes.put_size() == 0 && changes.ended_size() == 0) return std::nullopt;
  return m;
}

std::optional<wire::ConnectRequest> HostReports::faults(Nanos now) {
  if (!setup_.faults || now < next_faults_) return std::nullopt;
  wire::ConnectRequest m;
  if (!observe(setup_.faults(), m.mutable_host_faults_observed())) return std::nullopt;
  next_faults_ = now + limits::kReportHostFaults;
  return m;
}

void HostReports::add_to(wire::StreamHeartbeat* beat) const {
  beat->set_sessions(sessions_);
  loads_.add_to(beat);
}

}  // namespace sluice::control
