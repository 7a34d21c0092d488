// Probes a Ceph pool: whether it is the StoragePool's storage, and how much space it has. One probe
// runs at a time, on a thread of rbd::ceph_executor().
//
// Threads: any.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "control/wire.h"
#include "control_rbd/pool_client.h"

namespace sluice::control {

class RbdPoolProbe : public std::enable_shared_from_this<RbdPoolProbe> {
 public:
  explicit RbdPoolProbe(std::shared_ptr<PoolClient> client) : client_(std::move(client)) {}

  // Probes the pool now. `done` runs for this probe and for every later probe(). If a probe already
  // waits for Ceph, `done` also runs immediately and reports that.
  void observe(const std::string& uid, std::function<void(wire::PoolObserved)> done);
  // Something changed: probes again. Does nothing before the first observe().
  void probe();

 private:
  void probe_now();
  wire::PoolObserved probed() const;

  const std::shared_ptr<PoolClient> client_;
  std::mutex mutex_;
  std::string uid_;
  std::function<void(wire::PoolObserved)> done_;
  Nanos since_ = 0;     // start of the probe; 0: none
  bool again_ = false;  // something changed since the probe began
};

}  // namespace sluice::control
