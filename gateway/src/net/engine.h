// The gateway's engine: reactors on their threads, portals, connections. main uses only this header
// of net/, and with it portal.h.
//
//   Engine::start()  rings are set up and probed, reactor threads run, nothing listens
//   ... the caller applies its configuration to lun::Exports ...
//   listen()         portals open (DESIGN R11: never before the LUNs are known); more may later
//   stop()           graceful end
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "base/reactors.h"
#include "base/result.h"
#include "forward/peers.h"
#include "iscsi/counters.h"
#include "iscsi/login/forwarding_access.h"
#include "iscsi/session_view.h"
#include "iscsi/shard.h"
#include "net/portal.h"
#include "nexus/exports.h"

namespace sluice::net {

struct Options {
  unsigned reactors = 1;                                  // 1..kMaxReactors
  size_t reactor_memory = limits::kDefaultReactorMemory;  // bytes of I/O buffers per reactor
  std::vector<int> cpus;  // pin reactor i to cpus[i % size]; empty: no pinning
  // TCP_CONGESTION of every connection; empty: the system's default
  std::string tcp_congestion = "cubic";
  uint64_t descriptors = UINT64_MAX;  // limit of the process (RLIMIT_NOFILE)
  Nanos busy_poll = 0;                // time to poll before sleeping, 0..1 ms; 0: never
  iscsi::Settings settings;
};

class Engine {
 public:
  // Error: which layer refused io_uring with the remedy, or that a thread could not be created.
  static Result<std::unique_ptr<Engine>> start(Options options, lun::Exports& exports);
  virtual ~Engine() = default;  // after stop()

  virtual Reactors& reactors() = 0;

  // Opens all portals or none, in addition to the open ones. Error: the address and the reason.
  virtual Result<void> listen(const std::vector<Portal>& portals) = 0;
  // The bound addresses, in the order of the arguments of listen(), with the kernel's choice of
  // port.
  virtual std::vector<std::string> addresses() const = 0;
  // Closes portals by their bound addresses; ignores others. Existing sessions stay.
  virtual void close_portals(const std::vector<std::string>& addresses) = 0;

  // The other gateways and their state; and this gateway's identity and keys. Any thread, any time;
  // forwarding begins when they are set.
  virtual forward::Peers& peers() = 0;
  virtual iscsi::ForwardingAccess& forwarding() = 0;
  // Addresses, "host:port", of the other gateways: capacity is reserved for their logins.
  virtual void expect_gateways(const std::vector<std::string>& addresses) = 0;
  // What hosts met since the last call.
  virtual iscsi::HostFaultReport host_faults() = 0;

  // Access to this target changed, or the target was removed: reviews its sessions.
  virtual void review_access(const std::string& target) = 0;
  // Maximum number of sessions of hosts; 0: limited only by the number of connections.
  virtual void limit_sessions(unsigned most) = 0;
  // Requests a logout of these sessions, by TSIH; ends them after limits::kEvictionLogout.
  virtual void evict(const std::vector<uint16_t>& tsihs) = 0;

  // Queries every reactor and waits for a bounded time. Not from a reactor.
  virtual std::vector<iscsi::SessionView> sessions() = 0;
  virtual iscsi::CountersSnapshot counters() const = 0;

  // Stops accepting, requests logouts, waits for them (kShutdownLogout), ends the other sessions,
  // waits for the backends, stops the threads. Returns within `bound`; false if something was still
  // in flight. Not from a reactor.
  virtual bool stop(Nanos bound) = 0;
};

}  // namespace sluice::net
