// The gateway's engine: reactors on their threads, portals, connections. The only thing main sees
// of net/.
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
#include "nexus/exports.h"

namespace sluice::net {

// Where to listen. `address` is "ip:port" or "[ip6]:port"; port 0, or none, takes a free one.
struct Portal {
  std::string address;
  uint16_t tpgt = 1;
  uint16_t relative_port = 1;
  bool forwarding = false;  // for other gateways; the numbers above mean nothing then
};

struct Options {
  unsigned reactors = 1;                                  // 1..kMaxReactors
  size_t reactor_memory = limits::kDefaultReactorMemory;  // bytes of I/O buffers per reactor
  std::vector<int> cpus;                 // pin reactor i to cpus[i % size]; empty: no pinning
  std::string tcp_congestion = "cubic";  // TCP_CONGESTION of every connection; empty: the system's
  uint64_t descriptors = UINT64_MAX;     // that the process may have (RLIMIT_NOFILE)
  Nanos busy_poll = 0;                   // spin this long before sleeping, 0..1 ms; 0: never
  iscsi::Settings settings;
};

class Engine {
 public:
  // Error: which layer refused io_uring and how to mend it, or what thread could not be made.
  static Result<std::unique_ptr<Engine>> start(Options options, lun::Exports& exports);
  virtual ~Engine() = default;  // after stop()

  virtual Reactors& reactors() = 0;

  // Opens all portals or none, beside those that are open. Error: the address and why.
  virtual Result<void> listen(const std::vector<Portal>& portals) = 0;
  // Addresses bound, in the order given to listen() (with the port the kernel chose).
  virtual std::vector<std::string> addresses() const = 0;
  // Closes portals by their bound addresses, others are ignored. Sessions that came in stay.
  virtual void close_portals(const std::vector<std::string>& addresses) = 0;

  // Who the other gateways are, and how each is found; who we are to them, and the keys. Any
  // thread, any time; forwarding begins when they are set.
  virtual forward::Peers& peers() = 0;
  virtual iscsi::ForwardingAccess& forwarding() = 0;
  // Addresses, "host:port", of the other gateways: room for their logins is kept free.
  virtual void expect_gateways(const std::vector<std::string>& addresses) = 0;
  // Failed authentications of hosts, since the last call.
  virtual iscsi::LoginFailureReport login_failures() = 0;

  // Who may be at this target has changed, or it is gone: its sessions are looked at anew.
  virtual void review_access(const std::string& target) = 0;
  // Sessions of hosts that may be here at a time; 0: no limit but that of connections.
  virtual void limit_sessions(unsigned most) = 0;
  // Asks these sessions to log out, by TSIH; ends them after limits::kEvictionLogout.
  virtual void evict(const std::vector<uint16_t>& tsihs) = 0;

  // Asks every reactor; bounded wait. Not from a reactor.
  virtual std::vector<iscsi::SessionView> sessions() = 0;
  virtual iscsi::CountersSnapshot counters() const = 0;

  // Stops accepting, asks initiators to log out, waits for them (kShutdownLogout), ends the rest,
  // waits for the backends, stops the threads. Returns within `bound`; false when something was
  // still in flight then. Not from a reactor.
  virtual bool stop(Nanos bound) = 0;
};

}  // namespace sluice::net
