// The client through which this gateway uses a Ceph pool (rbd/rados_client.h). Pools with the same
// access share it. Images may be opened only after the control plane has recorded the client
// (DESIGN R2; gateway/decisions/ceph.md).
//
// 1. It connects and requests that the client is recorded.
// 2. Recorded: images may be opened.
// 3. Fenced: the client's images are permanently lost. It starts again with a new client.
//
// Threads: any. No function waits for Ceph unless its comment says so; the threads of
// rbd::ceph_executor() do.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "control/client_commits.h"
#include "control/local/pool_marker.h"
#include "control/local/record.h"
#include "control/volume/callback_gate.h"
#include "control/volume/storage_pool.h"
#include "control_rbd/open_images.h"
#include "rbd/rados_client.h"

namespace sluice::control {

class PoolClient : public std::enable_shared_from_this<PoolClient> {
 public:
  // `images`: the images that the client has open.
  PoolClient(wire::DesiredPool desired, const PoolServices& services,
             std::shared_ptr<CallbackGate> callbacks, std::shared_ptr<OpenImages> images);
  ~PoolClient();

  // Starts to connect. `changed`: the report of the pool may have changed; called on any thread.
  void begin(std::function<void()> changed);
  // Call it about once a second.
  void tick();
  // The control plane's newest definition of the pool; the location is the same as before.
  void expect(const wire::DesiredPool& desired);
  ExpectedPool expected() const;

  // The pool that has the configured name now, and whether it is the StoragePool's storage.
  struct Storage {
    std::shared_ptr<rbd::Pool> pool;
    Identified identified;
    uint32_t adoptions() const { return identified.marker ? identified.marker->adoptions : 0; }
  };
  // Reads and compares the marker; waits for Ceph.
  Result<Storage> identify(rbd::RadosClient& client) const;
  // The pool as the recorded client uses it; null: none is recorded yet. *problem: the reason, if
  // known; *since: since when (CLOCK_BOOTTIME, nanoseconds).
  std::shared_ptr<rbd::Pool> recorded(std::string* problem, Nanos* since) const;
  // The pool as any client uses it, recorded or not, for work that opens no image. Waits for Ceph.
  Result<std::shared_ptr<rbd::Pool>> connected() const;

  struct Status {
    std::shared_ptr<rbd::RadosClient> client;  // null: not connected
    bool connecting = false;
    bool recorded = false;
    std::string problem;  // from connecting or recording
  };
  Status status() const;
  bool is_connecting() const;

  const wire::DesiredRbdPool& desired() const { return desired_.rbd(); }
  const std::string& name() const { return name_; }  // pool or pool/namespace
  // Group of the tasks that wait for this pool. The end of a client uses the group of its
  // address, as fencing notices do, so that a pool that hangs delays neither.
  const std::string& group() const { return desired_.uid(); }
  const Holder& self() const { return self_; }
  CallbackGate& callbacks() const { return *callbacks_; }

 private:
  void connect();
  void connect_now();
  void on_client_state(const std::string& client, ClientCommits::State state,
                       const std::string& why);
  void client_gone(const std::string& client);

  const wire::DesiredPool desired_;
  const std::string name_;
  const backend::CephAccess access_;
  const Holder self_;
  ClientCommits& commits_;  // used through callbacks() only
  const std::shared_ptr<CallbackGate> callbacks_;
  const std::shared_ptr<OpenImages> images_;
  std::function<void()> changed_;  // constant after begin()

  mutable std::mutex mutex_;
  Status status_;
  std::shared_ptr<rbd::Pool> pool_;
  uint64_t commit_ = 0;  // handle of the client in commits_
  Nanos problem_since_ = 0;
  Nanos tried_ = 0;
  ExpectedPool expected_;
};

}  // namespace sluice::control
