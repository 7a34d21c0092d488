#include "control/sessions.h"

#include <set>

#include "base/hex.h"

namespace sluice::control {
namespace {

const char* yes_no(bool yes) { return yes ? "Yes" : "No"; }
const char* digest(bool on) { return on ? "CRC32C" : "None"; }

// Keys as RFC 7143 §13 names them.
void put_parameters(const iscsi::Parameters& p, wire::SessionObserved* session) {
  auto& out = *session->mutable_parameters();
  out["HeaderDigest"] = digest(p.header_digest);
  out["DataDigest"] = digest(p.data_digest);
  out["InitialR2T"] = yes_no(p.initial_r2t);
  out["ImmediateData"] = yes_no(p.immediate_data);
  out["MaxBurstLength"] = std::to_string(p.max_burst_length);
  out["FirstBurstLength"] = std::to_string(p.first_burst_length);
  out["MaxOutstandingR2T"] = std::to_string(p.max_outstanding_r2t);
  out["AuthMethod"] = p.auth_method;
}

bool same_counts(const wire::SessionObserved& a, const wire::SessionObserved& b) {
  return a.read_bytes() == b.read_bytes() && a.write_bytes() == b.write_bytes() &&
         a.reads() == b.reads() && a.writes() == b.writes() &&
         a.other_commands() == b.other_commands();
}

// TSIHs are reused; the addresses of the connection distinguish the sessions.
bool same_session(const wire::SessionObserved& a, const wire::SessionObserved& b) {
  return a.initiator() == b.initiator() && a.isid() == b.isid() &&
         a.target_iqn() == b.target_iqn() && a.initiator_address() == b.initiator_address();
}

}  // namespace

wire::SessionObserved SessionReport::observe(const iscsi::SessionView& view, int64_t now_ms) const {
  const iscsi::Parameters& p = view.parameters;
  wire::SessionObserved session;
  session.set_tsih(view.tsih);
  session.set_target_iqn(p.target_name);
  session.set_host_uid(host_of_(p.target_name, p.initiator_name));
  session.set_initiator(p.initiator_name);
  session.set_isid(hex_text(p.isid));
  session.set_portal_group_tag(p.tpgt);
  session.set_initiator_address(view.initiator_address);
  session.set_portal_address(view.target_address);
  session.set_login_time_ms(now_ms - view.uptime / kMillisecond);
  session.set_read_bytes(view.data_in_bytes);
  session.set_write_bytes(view.data_out_bytes);
  session.set_reads(view.reads);
  session.set_writes(view.writes);
  session.set_other_commands(view.commands - view.reads - view.writes);
  put_parameters(p, &session);
  return session;
}

wire::SessionsObserved SessionReport::all(const std::vector<iscsi::SessionView>& views,
                                          int64_t now_ms) {
  reported_.clear();
  wire::SessionsObserved report = changes(views, now_ms, false);
  report.set_full(true);
  return report;
}

wire::SessionsObserved SessionReport::changes(const std::vector<iscsi::SessionView>& views,
                                              int64_t now_ms, bool counters) {
  wire::SessionsObserved report;
  std::set<uint32_t> there;
  for (const iscsi::SessionView& view : views) {
    // The gateway to which the host is connected reports forwarded sessions.
    if (view.parameters.discovery || view.parameters.forwarded_by != 0) continue;
    there.insert(view.tsih);
    wire::SessionObserved session = observe(view, now_ms);
    const auto reported = reported_.find(view.tsih);
    if (reported != reported_.end() && same_session(reported->second, session)) {
      // recomputing it would vary when the clock is adjusted
      session.set_login_time_ms(reported->second.login_time_ms());
      const bool moved = reported->second.host_uid() != session.host_uid();
      if (!moved && !(counters && !same_counts(reported->second, session))) continue;
    }
    *report.add_put() = session;
    reported_[view.tsih] = std::move(session);
  }
  for (auto at = reported_.begin(); at != reported_.end();) {
    if (there.contains(at->first)) {
      ++at;
      continue;
    }
    report.add_ended(at->first);
    at = reported_.erase(at);
  }
  return report;
}

namespace {

// A peer gives its name before it is authenticated, and a string of protobuf must be UTF-8.
std::string printable(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

wire::HostFaultKind kind_of(iscsi::HostFaultKind kind) {
  switch (kind) {
    case iscsi::HostFaultKind::kLoginRefused:
      return wire::HOST_FAULT_KIND_LOGIN_REFUSED;
    case iscsi::HostFaultKind::kAuthenticationFailed:
      return wire::HOST_FAULT_KIND_AUTHENTICATION_FAILED;
    case iscsi::HostFaultKind::kPingLost:
      return wire::HOST_FAULT_KIND_PING_LOST;
    case iscsi::HostFaultKind::kDigestError:
      return wire::HOST_FAULT_KIND_DIGEST_ERROR;
  }
  return wire::HOST_FAULT_KIND_UNSPECIFIED;
}

}  // namespace

bool observe(const iscsi::HostFaultReport& report, wire::HostFaultsObserved* out) {
  for (const iscsi::HostFault& one : report.faults) {
    wire::HostFault& fault = *out->add_faults();
    fault.set_kind(kind_of(one.kind));
    fault.set_initiator(printable(one.initiator));
    fault.set_address(printable(one.address));
    fault.set_target_iqn(printable(one.target));
    fault.set_reason(printable(one.reason));
    fault.set_count(one.count);
  }
  out->set_others(report.others);
  return !report.empty();
}

}  // namespace sluice::control
