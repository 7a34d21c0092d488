// The gateway's part in a cluster: keeps the stream to the control plane, applies the desired
// state, reports observed state and runs jobs. main.cc uses only this header of the room.
//
// - start() opens the stream, which brings the desired state. If none arrives in time, the state
//   that the previous process saved is applied from disk (DESIGN R3).
// - stop() releases the volumes (R7), then ends the stream.
//
// Threads: two for the stream, and those of an executor for work that may wait. Work that waits for
// a pool, such as opening its volumes, jobs, probes and records, is in a group of that pool, so
// that a pool that hangs delays no other. One thread at a time applies desired state.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/applier.h"
#include "control/membership.h"
#include "control/stream.h"
#include "control/stream_hello.h"
#include "control/volume/storage_pool.h"
#include "iscsi/host_faults.h"
#include "iscsi/session_view.h"

namespace sluice::control {

struct ClientSetup {
  StreamOptions stream;
  GatewayIdentity gateway;
  std::string state_directory;
  Nanos state_from_disk = limits::kStateFromDisk;
  Nanos observe_pools = limits::kObservePools;  // interval between two probes of a pool
  // directory for records of volumes on devices; shared by the gateways of a node
  std::string device_records = {};
  Surroundings around;
  // Ceph pools; null: this gateway has none.
  std::shared_ptr<PoolKind> rbd;
  // Called when the pool of a unit is nearly full; may be empty.
  std::function<void(lun::Unit&)> nearly_full;
  iscsi::SessionLister sessions;
  // Ends the sessions with these TSIHs: sends an Asynchronous Message, then closes the connection.
  std::function<void(const std::vector<uint16_t>& tsihs)> evict;
  // The state of each peer; omits peers whose state is unknown.
  std::function<std::vector<wire::PeerObserved>()> peers;
  // Sum over all reactors of the time in which they did not sleep, in nanoseconds.
  std::function<uint64_t()> busy_nanos;
  // Reports which ports other processes use. Null: no port counts as used.
  Membership::PortsInUse ports_in_use = nullptr;
  // Called when another process has replaced this one under the same gateway name. This process is
  // fenced and must end immediately. May be null.
  std::function<void(const std::string& why)> replaced = nullptr;
  // What hosts met since the last call; may be empty.
  std::function<iscsi::HostFaultReport()> host_faults = {};
};

class Client {
 public:
  static Result<std::unique_ptr<Client>> start(ClientSetup setup);
  virtual ~Client() = default;

  // Releases all volumes, for at most `limit`, then waits for running work, for a bounded time.
  // False: a volume was not released or work did not end in time. That work still uses this object,
  // so the process must end without destroying it.
  virtual bool stop(Nanos limit) = 0;

  // An administrator confirms that this gateway now belongs to `system`. Error: not a system id.
  // Any thread.
  virtual Result<void> accept_system(const std::string& system) = 0;

  // --- observations from the rest of the gateway; any thread
  virtual void peer_found(const wire::PeerObserved& observed) = 0;
};

}  // namespace sluice::control
