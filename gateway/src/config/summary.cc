#include "config/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <set>

#include "backend/size_text.h"
#include "config/uuid.h"

namespace sluice::config {
namespace {

std::string_view on_off(bool on) { return on ? "on" : "off"; }

std::string chap_text(std::string_view name, const ChapConfig& chap) {
  if (!chap.configured()) return "";
  return fmt::format(", {} user {} (secret: {})", name, chap.user, chap.source);
}

void put_target(std::string* out, const TargetConfig& target) {
  auto to = std::back_inserter(*out);
  fmt::format_to(to, "target {}{}\n", target.iqn,
                 target.alias.empty() ? "" : " \"" + target.alias + "\"");
  if (target.hosts.empty()) fmt::format_to(to, "  host: none, every login is refused\n");
  for (const HostConfig& host : target.hosts) {
    fmt::format_to(
        to, "  host {}{}{}{}\n",
        host.initiators.empty() ? "any" : fmt::format("{}", fmt::join(host.initiators, " ")),
        host.read_only ? ", read-only" : "", chap_text("chap", host.chap),
        chap_text("mutual", host.mutual));
  }
  for (const LunConfig& lun : target.luns) {
    fmt::format_to(to, "  LUN {} {} uuid {}\n", lun.id, describe(lun.spec), format_uuid(lun.uuid));
  }
}

}  // namespace

std::string describe(const backend::Spec& spec) {
  std::string text = spec.kind;
  if (!spec.path.empty()) text += ":" + spec.path;
  if (spec.size != 0) text += ", " + backend::format_size(spec.size);
  if (spec.kind == "file") text += spec.direct ? ", io=direct" : ", io=buffered";
  text += fmt::format(", block-size={}, write-cache={}", spec.block_size, on_off(spec.write_cache));
  if (spec.read_only) text += ", read-only";
  return text;
}

std::string summary(const Config& config) {
  std::string out;
  auto to = std::back_inserter(out);
  for (const PortalConfig& portal : config.portals) {
    fmt::format_to(to, "listen {}{} tpgt {}\n", portal.address,
                   portal.advertise.empty() ? "" : " advertised as " + portal.advertise,
                   portal.tpgt);
  }
  if (const ControlPlaneConfig& control = config.control_plane; control.given()) {
    fmt::format_to(to, "control plane {}{}\ngateway {} on node {}",
                   fmt::join(control.endpoints, " "),
                   control.insecure_loopback ? " without TLS" : "", control.gateway, control.node);
  } else {
    fmt::format_to(to, "gateway {}", config.gateway_number);
  }
  fmt::format_to(to, ", {} reactors, {} each\n", config.reactors,
                 backend::format_size(config.reactor_memory));
  fmt::format_to(to, "metrics {}\nadmin socket {}\nstate {}\n",
                 config.metrics.empty() ? "off" : config.metrics,
                 config.admin_socket.empty() ? "off" : config.admin_socket, config.state_directory);
  if (config.control_plane.given()) return out;
  fmt::format_to(
      to, "discovery{}{}\n", config.discovery.chap.configured() ? "" : ": no authentication",
      chap_text("chap", config.discovery.chap) + chap_text("mutual", config.discovery.mutual));
  for (const TargetConfig& target : config.targets) put_target(&out, target);
  return out;
}

std::vector<std::string> describe(const Changes& changes, const desired::Outcome& outcome) {
  std::vector<std::string> lines;
  const auto names = [&](const std::vector<std::string>& list, std::string_view what) {
    for (const std::string& name : list) lines.push_back(fmt::format("{} {}", name, what));
  };
  const auto luns = [&](const std::vector<desired::LunName>& list, std::string_view what) {
    for (const desired::LunName& name : list) {
      lines.push_back(fmt::format("{} {}", name.text(), what));
    }
  };
  const auto volumes = [&](const std::set<Uuid>& uuids, std::string_view what) {
    for (const TargetConfig& target : changes.in_force.targets) {
      for (const LunConfig& lun : target.luns) {
        if (uuids.contains(lun.uuid)) luns({{target.iqn, lun.id}}, what);
      }
    }
  };
  names(outcome.added, "added");
  names(outcome.removed, "removed");
  names(outcome.access_changed, "hosts changed");
  luns(outcome.luns_removed, "removed");
  luns(outcome.luns_added, "added");
  volumes(changes.resizes, "resized");
  volumes(changes.caches, "write cache changed");
  if (outcome.discovery_changed) lines.emplace_back("discovery authentication changed");
  if (changes.log_changed) lines.emplace_back("log level changed");
  return lines;
}

}  // namespace sluice::config
