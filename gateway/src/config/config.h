// The configuration that an operator wrote, in a file or on the command line: read, checked and
// complete. It contains values only. parse.h reads it, changes.h compares two of them, apply.h
// applies it.
//
// Order at start: flags.h, parse.h, complete.h (fills in defaults, refuses duplicates), changes.h,
// apply.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "iscsi/login/parameters.h"

namespace sluice::config {

using Uuid = std::array<uint8_t, 16>;

// The line of an entry, for messages; ignored in comparisons.
struct Line {
  int number = 0;  // 1-based; 0: not from a file
  bool operator==(const Line&) const { return true; }
};

struct PortalConfig {
  std::string address;    // "192.0.2.1:3260", "[::]:3260"; port 0: the kernel selects one
  std::string advertise;  // the address in discovery answers; empty: the listen address
  uint16_t tpgt = 1;      // also the relative target port
  Line line;
  bool operator==(const PortalConfig&) const = default;
};

// One direction of CHAP. The secret is copied only into lun::HostAccess: summary.h prints `source`
// instead.
struct ChapConfig {
  std::string user;
  std::string secret;
  std::string source;  // "file /etc/sluice/alice", "environment ALICE", "inline"
  // The secret alone decides whether CHAP is required, as in lun::ChapCredential.
  bool configured() const { return !secret.empty(); }
  bool operator==(const ChapConfig&) const = default;
};

struct HostConfig {
  std::vector<std::string> initiators;  // canonical names; empty: any (written "*")
  ChapConfig chap;
  ChapConfig mutual;
  bool read_only = false;
  Line line;
  bool operator==(const HostConfig&) const = default;
};

struct LunConfig {
  uint64_t id = 0;
  Uuid uuid{};  // all zeros until complete() derives it
  backend::Spec spec;
  std::string product = "VOLUME";
  uint32_t oui = 0;  // 0: NAA 3
  uint32_t physical_block_size = 4096;
  Line line;
};

struct TargetConfig {
  std::string iqn;
  std::string alias;
  std::vector<HostConfig> hosts;
  std::vector<LunConfig> luns;
  Line line;
};

struct DiscoveryConfig {
  ChapConfig chap;
  ChapConfig mutual;
  bool operator==(const DiscoveryConfig&) const = default;
};

struct ConnectionConfig {
  unsigned max = limits::kMaxConnections;
  unsigned max_unauthenticated = limits::kMaxUnauthenticated;
  Nanos login_timeout = limits::kLoginTimeout;
  Nanos nop_silence = limits::kNopSilence;
  Nanos nop_timeout = limits::kNopTimeout;
  uint32_t command_window = limits::kDefaultCommandWindow;
  bool operator==(const ConnectionConfig&) const = default;
};

struct LogConfig {
  log::Level level = log::Level::kInfo;
  log::Format format = log::Format::kText;
  bool operator==(const LogConfig&) const = default;
};

// The control plane of this gateway's cluster. If configured, it defines targets and portals.
struct ControlPlaneConfig {
  std::vector<std::string> endpoints;  // host:port; empty: no control plane
  std::string ca;                      // PEM files
  std::string certificate;
  std::string key;
  bool insecure_loopback = false;
  std::string gateway;  // name of the Gateway object; default: the host's name
  std::string node;     // default: the host's name
  // Records of volumes on whole devices, the same directory for all gateways of the node.
  std::string device_records = "/var/lib/sluice/devices";
  Line line;
  bool given() const { return !endpoints.empty(); }
  bool operator==(const ControlPlaneConfig&) const = default;
};

struct Config {
  ControlPlaneConfig control_plane;
  std::vector<PortalConfig> portals;
  uint16_t gateway_number = 1;                            // ALUA's target port group
  unsigned reactors = 0;                                  // 0 until complete(): one per CPU allowed
  size_t reactor_memory = limits::kDefaultReactorMemory;  // bytes, per reactor
  std::vector<unsigned> reactor_cpus;                     // empty: not pinned
  std::string tcp_congestion = "cubic";                   // empty: the system's
  Nanos busy_poll = 0;                                    // time to poll before sleeping
  std::string metrics;                                    // address; empty: off
  std::string admin_socket;                               // path; empty: off
  // false: the default path, which may be in use
  bool admin_socket_given = false;
  std::string state_directory;
  bool state_directory_given = false;  // as for admin_socket_given
  bool core_dumps = false;
  LogConfig log;
  iscsi::Offer offer;
  ConnectionConfig connections;
  DiscoveryConfig discovery;
  std::vector<TargetConfig> targets;
};

// Compares field by field; a new field in the struct fails to compile here.
bool same(const backend::Spec& a, const backend::Spec& b);
bool same(const iscsi::Offer& a, const iscsi::Offer& b);

}  // namespace sluice::config
