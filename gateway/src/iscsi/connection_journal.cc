#include "iscsi/connection_journal.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "base/log_repeats.h"

namespace sluice::iscsi {
namespace {

// Without the port, which differs each time.
std::string_view peer_host(const ConnectionEnds& ends) {
  const std::string_view address = ends.peer_address;
  return address.substr(0, address.rfind(':'));
}

}  // namespace

// Faults between gateways are reported as the reach of peers.
void ConnectionJournal::fault(Peer peer, HostFaultKind kind, std::string_view reason) {
  if (ends_.forwarding) return;
  HostFault fault{.kind = kind, .reason = std::string(reason)};
  fault.initiator = std::move(peer.initiator);
  fault.target = std::move(peer.target);
  fault.address = peer_host(ends_);
  const bool known = peer.in_session || shard_.gateway->known_hosts.known(ends_.peer_network);
  shard_.gateway->host_faults.record(
      std::move(fault), known ? HostFaults::From::kKnown : HostFaults::From::kStranger);
}

void ConnectionJournal::login_refused(Peer peer, LoginStatus status, std::string_view reason) {
  const auto number = static_cast<uint16_t>(status);
  log::repeated(log::Level::kInfo, cause_of(fmt::format("{} {}", peer.initiator, reason)),
                "login refused",
                {{"peer", ends_.peer_address},
                 {"initiator", peer.initiator},
                 {"portal", ends_.local_address},
                 {"status", log::Hex{number}},
                 {"reason", reason}});
  if (number >> 8 < 2) return;  // a redirection is no fault
  if (status == LoginStatus::kAuthenticationFailure) {
    return fault(std::move(peer), HostFaultKind::kAuthenticationFailed, reason);
  }
  fault(std::move(peer), HostFaultKind::kLoginRefused,
        fmt::format("status {:04x}: {}", number, reason));
}

// Of a log line that the peer can repeat.
std::string ConnectionJournal::cause_of(std::string_view reason) const {
  return fmt::format("{} {} {}", peer_host(ends_), ends_.local_address, reason);
}

void ConnectionJournal::dropped(uint16_t tsih, std::string_view why) {
  log::repeated(log::Level::kWarning, cause_of(why), "connection dropped",
                {{"session", tsih}, {"peer", ends_.peer_address}, {"reason", why}});
}

void ConnectionJournal::session_opened(uint16_t tsih, const Parameters& p) {
  log::info("session opened", {{"session", tsih},
                               {"initiator", p.initiator_name},
                               {"target", p.discovery ? "(discovery)" : p.target_name},
                               {"peer", ends_.peer_address},
                               {"portal", ends_.local_address},
                               {"auth", p.auth_method}});
}

void ConnectionJournal::session_asked_to_leave(uint16_t tsih, const Parameters& p,
                                               std::string_view why) {
  log::info("session asked to leave", {{"session", tsih},
                                       {"initiator", p.initiator_name},
                                       {"target", p.target_name},
                                       {"reason", why}});
}

void ConnectionJournal::session_over(uint16_t tsih, const Parameters& p) {
  log::info("session over", {{"session", tsih}, {"initiator", p.initiator_name}});
}

}  // namespace sluice::iscsi
