// What one reactor lends to all its connections, and what all reactors share.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <unordered_map>

#include "base/clock.h"
#include "base/limits.h"
#include "iscsi/counters.h"
#include "iscsi/login/forwarding_access.h"
#include "iscsi/login/known_networks.h"
#include "iscsi/login/login_throttle.h"
#include "iscsi/login/parameters.h"
#include "iscsi/write_buffer_quota.h"
#include "nexus/exports.h"
#include "nexus/nexus.h"
#include "unit/latency_log.h"

namespace sluice::iscsi {

class Connection;
class SessionDirectory;

// Configurable behaviour; bounds and defaults in base/limits.h.
struct Settings {
  Offer offer;
  uint32_t command_window = limits::kDefaultCommandWindow;  // 1..kMaxCommandWindow
  Nanos login_timeout = limits::kLoginTimeout;
  Nanos nop_silence = limits::kNopSilence;  // 0: never ping
  Nanos nop_timeout = limits::kNopTimeout;
  unsigned max_connections = limits::kMaxConnections;
  unsigned max_unauthenticated = limits::kMaxUnauthenticated;
};

// Shared by all reactors; atomics and internally locked parts only.
struct Gateway {
  Settings settings;
  lun::Exports* exports = nullptr;
  SessionDirectory* directory = nullptr;
  ForwardingAccess forwarding;  // for portals of gateways
  LoginThrottle throttle;       // of logins of hosts
  KnownNetworks known_hosts;
  KnownNetworks known_gateways;
  std::function<void(uint8_t* out, size_t n)> random;  // unguessable bytes
  std::atomic<unsigned> connections{0};
};

struct Shard {
  Gateway* gateway = nullptr;
  lun::ReactorContext context;
  lun::LatencyLog latencies;  // of the present batch; its end settles it; context.latencies is this
  Counters* counters = nullptr;
  Nanos now = 0;  // time of the present batch; context.now points here
  WriteBufferQuota write_quota{context};
  // Connections alive on this reactor by id, so that what others post finds them or finds nothing.
  std::unordered_map<uint64_t, Connection*> connections;
};

}  // namespace sluice::iscsi
