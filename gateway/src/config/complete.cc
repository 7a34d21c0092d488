#include "config/complete.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/socket_address.h"
#include "config/section.h"
#include "config/uuid.h"

namespace sluice::config {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Remembers what was seen where, to tell the second one about the first.
class Unique {
 public:
  Unique(Faults& faults, std::string_view noun) : faults_(faults), noun_(noun) {}

  void add(const std::string& value, const Line& line, const std::string& path) {
    const auto [first, inserted] = seen_.emplace(value, std::pair{line.number, path});
    if (inserted) return;
    const auto& [first_line, first_path] = first->second;
    const std::string where =
        first_line > 0 ? fmt::format("{} in line {}", first_path, first_line) : first_path;
    faults_.add(line.number, path, fmt::format("{} {} is taken by {}", noun_, value, where));
  }

 private:
  Faults& faults_;
  std::string_view noun_;
  std::map<std::string, std::pair<int, std::string>> seen_;
};

void check_portals(const Config& config, Faults& faults) {
  Unique addresses(faults, "address");
  for (size_t i = 0; i < config.portals.size(); ++i) {
    const PortalConfig& portal = config.portals[i];
    const Result<SocketAddress> parsed = parse_socket_address(portal.address, 0);
    if (parsed && parsed.value().port == 0) continue;  // each gets a port of its own
    addresses.add(portal.address, portal.line, fmt::format("listen[{}].address", i));
  }
}

void check_hosts(const TargetConfig& target, const std::string& path, Faults& faults) {
  Unique names(faults, "initiator");
  for (size_t i = 0; i < target.hosts.size(); ++i) {
    const HostConfig& host = target.hosts[i];
    const std::string key = fmt::format("{}.hosts[{}].initiators", path, i);
    if (host.initiators.empty()) names.add("\"*\"", host.line, key);
    for (const std::string& name : host.initiators) names.add(name, host.line, key);
  }
}

void check_targets(const Config& config, Faults& faults) {
  Unique iqns(faults, "name");
  Unique uuids(faults, "UUID");
  Unique paths(faults, "path");
  for (size_t i = 0; i < config.targets.size(); ++i) {
    const TargetConfig& target = config.targets[i];
    const std::string at = fmt::format("targets[{}]", i);
    iqns.add(target.iqn, target.line, at + ".iqn");
    check_hosts(target, at, faults);
    Unique ids(faults, "LUN");
    for (size_t j = 0; j < target.luns.size(); ++j) {
      const LunConfig& lun = target.luns[j];
      const std::string lun_at = fmt::format("{}.luns[{}]", at, j);
      ids.add(std::to_string(lun.id), lun.line, lun_at + ".id");
      uuids.add(format_uuid(lun.uuid), lun.line, lun_at + ".uuid");
      if (!lun.spec.path.empty()) paths.add(lun.spec.path, lun.line, lun_at + ".path");
    }
  }
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

void check_control_plane(const ControlPlaneConfig& control, Faults& faults) {
  if (!control.given()) return;
  const int line = control.line.number;
  for (size_t i = 0; i < control.endpoints.size(); ++i) {
    const std::string& endpoint = control.endpoints[i];
    const std::string at = fmt::format("control-plane.endpoints[{}]", i);
    const size_t colon = endpoint.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == endpoint.size() ||
        endpoint.find_first_not_of("0123456789", colon + 1) != std::string::npos) {
      faults.add(line, at, fmt::format("got '{}', allowed is host:port", endpoint));
    } else if (const auto address = parse_socket_address(endpoint, 0);
               control.insecure_loopback && (!address || !address.value().loopback())) {
      faults.add(line, at, "without TLS only a numeric loopback address is allowed");
    }
  }
  for (const auto& [key, path] :
       {std::pair{"ca", control.ca}, {"certificate", control.certificate}, {"key", control.key}}) {
    if (control.insecure_loopback != path.empty()) {
      faults.add(line, fmt::format("control-plane.{}", key),
                 path.empty() ? "is missing; TLS needs ca, certificate and key"
                              : "has no use with insecure-loopback");
    }
  }
}

void fill_in(Config* config) {
  ControlPlaneConfig& control = config->control_plane;
  if (control.given() && control.gateway.empty()) control.gateway = host_name();
  if (control.given() && control.node.empty()) control.node = host_name();
  if (config->portals.empty() && !control.given())
    config->portals.emplace_back().address = "0.0.0.0:3260";
  if (config->reactors == 0) config->reactors = std::min(usable_cpus(), limits::kMaxReactors);
  if (!config->admin_socket_given) config->admin_socket = default_admin_socket();
  config->state_directory_given = !config->state_directory.empty();
  if (!config->state_directory_given) config->state_directory = default_state_directory();
  for (TargetConfig& target : config->targets) {
    for (LunConfig& lun : target.luns) {
      // So that /a/./b and /a/b are seen to be one. The backend's lock finds what links hide.
      if (!lun.spec.path.empty()) {
        lun.spec.path = std::filesystem::path(lun.spec.path).lexically_normal().string();
      }
      if (is_nil(lun.uuid)) {
        lun.uuid = derive_uuid(target.iqn, lun.id, lun.spec.kind, lun.spec.path);
      }
    }
  }
}

}  // namespace

Result<void> complete(Config* config, const std::string& file) {
  fill_in(config);
  Faults faults(file);
  if (config->admin_socket.size() > 107) {
    faults.add(0, "admin-socket", "is longer than the 107 bytes a socket's path may have");
  }
  check_control_plane(config->control_plane, faults);
  check_portals(*config, faults);
  check_targets(*config, faults);
  if (faults.none()) return {};
  return Error{faults.text()};
}

std::string default_admin_socket() {
  if (geteuid() == 0) return "/run/sluice/gateway.sock";
  const std::string runtime = environment("XDG_RUNTIME_DIR");
  const std::string base =
      runtime.empty() ? fmt::format("/tmp/sluice-{}", geteuid()) : runtime + "/sluice";
  return base + "/gateway.sock";
}

std::string default_state_directory() {
  if (geteuid() == 0) return "/var/lib/sluice";
  const std::string state = environment("XDG_STATE_HOME");
  if (!state.empty()) return state + "/sluice";
  return environment("HOME") + "/.local/state/sluice";
}

unsigned usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1u, static_cast<unsigned>(CPU_COUNT(&set)));
}

}  // namespace sluice::config
