#include "control/host_loads.h"

#include <utility>

namespace sluice::control {
namespace {

// TSIHs are reused; the address of the initiator distinguishes the sessions.
std::string key_of(const iscsi::SessionView& view) {
  return std::to_string(view.tsih) + ' ' + view.initiator_address;
}

}  // namespace

HostLoads::Counts HostLoads::counts_of(const iscsi::SessionView& view) {
  return {.commands = view.commands,
          .reads = view.reads,
          .writes = view.writes,
          .read_bytes = view.data_in_bytes,
          .write_bytes = view.data_out_bytes,
          .answered = view.answered,
          .answered_time = view.answered_time};
}

void HostLoads::add_increase(const Counts& from, const Counts& to, wire::HostLoad* load) {
  const uint64_t reads = to.reads - from.reads;
  const uint64_t writes = to.writes - from.writes;
  load->set_reads(load->reads() + reads);
  load->set_writes(load->writes() + writes);
  load->set_others(load->others() + (to.commands - from.commands) - reads - writes);
  load->set_read_bytes(load->read_bytes() + to.read_bytes - from.read_bytes);
  load->set_write_bytes(load->write_bytes() + to.write_bytes - from.write_bytes);
  load->set_answered(load->answered() + to.answered - from.answered);
  load->set_answered_time_ns(load->answered_time_ns() +
                             static_cast<uint64_t>(to.answered_time - from.answered_time));
}

void HostLoads::observe(const std::vector<iscsi::SessionView>& views) {
  const std::lock_guard lock(mutex_);
  std::map<std::string, Counts> now;
  std::map<std::string, wire::HostLoad> hosts;
  for (const iscsi::SessionView& view : views) {
    const iscsi::Parameters& p = view.parameters;
    if (p.discovery || p.forwarded_by != 0) continue;
    const std::string uid = host_of_(p.target_name, p.initiator_name);
    if (uid.empty()) continue;
    auto [at, added] = hosts.try_emplace(uid);
    wire::HostLoad& load = at->second;
    if (added) {
      if (const auto had = hosts_.find(uid); had != hosts_.end()) load = had->second;
      load.set_host_uid(uid);
      load.set_sessions(0);
      load.set_in_progress(0);
    }
    load.set_sessions(load.sessions() + 1);
    load.set_in_progress(load.in_progress() + view.in_flight);
    const std::string key = key_of(view);
    const auto known = before_.find(key);
    const Counts counts = counts_of(view);
    add_increase(known == before_.end() ? Counts() : known->second, counts, &load);
    now.emplace(key, counts);
  }
  before_ = std::move(now);
  hosts_ = std::move(hosts);
}

void HostLoads::add_to(wire::StreamHeartbeat* beat) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [uid, load] : hosts_) *beat->add_host_loads() = load;
}

}  // namespace sluice::control
