// What a reactor provides to its connections, and what all reactors share.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <unordered_map>

#include "base/clock.h"
#include "base/limits.h"
#include "iscsi/answer_times.h"
#include "iscsi/counters.h"
#include "iscsi/host_faults.h"
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

// Configurable behavior; base/limits.h has the ranges and defaults.
struct Settings {
  Offer offer;
  uint32_t command_window = limits::kDefaultCommandWindow;  // 1..kMaxCommandWindow
  Nanos login_timeout = limits::kLoginTimeout;
  Nanos nop_silence = limits::kNopSilence;  // 0: no pings
  Nanos nop_timeout = limits::kNopTimeout;
  unsigned max_connections = limits::kMaxConnections;
  unsigned max_unauthenticated = limits::kMaxUnauthenticated;
};

// Shared by all reactors: atomics and internally locked members only.
struct Gateway {
  Settings settings;
  lun::Exports* exports = nullptr;
  SessionDirectory* directory = nullptr;
  ForwardingAccess forwarding;  // for the portals of gateways
  LoginThrottle throttle;       // for the logins of hosts
  HostFaults host_faults;       // for the control plane
  KnownNetworks known_hosts;
  KnownNetworks known_gateways;
  std::function<void(uint8_t* out, size_t n)> random;  // cryptographically secure random bytes
  std::atomic<unsigned> connections{0};
};

struct Shard {
  // The current batch ended at `done`.
  void end_batch(Nanos done) {
    latencies.settle(done);
    answers.settle(done - now);
  }

  Gateway* gateway = nullptr;
  lun::ReactorContext context;
  // of the current batch; settled at its end; context.latencies refers to it
  lun::LatencyLog latencies;
  AnswerLog answers;  // of the current batch, too
  Counters* counters = nullptr;
  Nanos now = 0;  // time of the current batch; context.now refers to it
  WriteBufferQuota write_quota{context};
  // Live connections of this reactor by id; posted tasks find them by id or find nothing.
  std::unordered_map<uint64_t, Connection*> connections;
};

}  // namespace sluice::iscsi
