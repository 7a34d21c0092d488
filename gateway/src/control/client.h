// This gateway as a part of a cluster: keeps the stream, holds the desired state and makes it true,
// reports what is there, does the jobs. The one thing that main.cc sees of this room.
//
//   start()  the stream brings the desired state; where it brings none in time, the last life's is
//            applied from disk (DESIGN R3)
//   stop()   volumes are released in good order (R7), then the stream ends
//
// Threads: the stream's two and limits::kControlThreads for all that may wait; desired state is
// applied by one at a time of them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/applier.h"
#include "control/membership.h"
#include "control/stream.h"
#include "control/volume/storage_pool.h"
#include "control/volume/units.h"
#include "iscsi/login/login_throttle.h"
#include "iscsi/session_view.h"
#include "unit/reservations/reservation_contract.h"

namespace sluice::control {

struct ClientSetup {
  StreamOptions stream;
  std::string gateway;  // name of the Gateway object
  std::string node;
  std::string version;      // of this software
  std::string incarnation;  // fresh_incarnation()
  std::string state_directory;
  Nanos state_from_disk = limits::kStateFromDisk;
  Nanos observe_pools = limits::kObservePools;  // between two looks at each
  std::string device_records = {};  // records of volumes on devices; shared by the node's gateways
  Surroundings around;
  // Units take this store; it is there before the first of them is made.
  std::function<std::unique_ptr<Units>(std::shared_ptr<lun::ReservationStore>)> units;
  // Pools of Ceph; null: this gateway has none.
  std::shared_ptr<PoolKind> rbd;
  // A unit's pool has become nearly full; may be empty.
  std::function<void(lun::Unit&)> nearly_full;
  iscsi::SessionLister sessions;
  // Ends these sessions: Async Message, then close.
  std::function<void(const std::vector<uint16_t>& tsihs)> evict;
  // How each peer is found, those of which nothing is known left out.
  std::function<std::vector<wire::PeerObserved>()> peers;
  // Time that reactors weren't asleep, all added up.
  std::function<uint64_t()> busy_nanos;
  // May be null: no other process listens anywhere.
  Membership::PortsInUse ports_in_use = nullptr;
  // Another process has taken this gateway's name over: this one is fenced and has to end at once.
  // May be null.
  std::function<void(const std::string& why)> replaced = nullptr;
  // Failed authentications of hosts since the last call; may be empty.
  std::function<iscsi::LoginFailureReport()> login_failures = {};
};

class Client {
 public:
  static Result<std::unique_ptr<Client>> start(ClientSetup setup);
  virtual ~Client() = default;

  // False: some volume had not let go within `limit`; the process must end all the same.
  virtual bool stop(Nanos limit) = 0;

  // An administrator has confirmed that the gateway belongs to that system from now on. Error: no
  // system id. Any thread.
  virtual Result<void> accept_system(const std::string& system) = 0;

  // --- what the rest of the gateway finds out; any thread
  virtual void peer_found(const wire::PeerObserved& observed) = 0;
};

}  // namespace sluice::control
