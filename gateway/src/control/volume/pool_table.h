// The storage pools of this gateway, and the handling of a pool that changes while it is used. A
// pool is opened when it is first needed. Volumes that are open keep the pool that they were opened
// in.
//
// Threads: any.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/local/device_pool.h"
#include "control/local/lock_handover.h"
#include "control/volume/storage_pool.h"

namespace sluice::control {

class PoolTable {
 public:
  struct Setup {
    PoolServices services;
    std::shared_ptr<PoolKind> rbd;     // null: this gateway has no Ceph pools
    std::string device_records = {};   // ControlPlaneConfig::device_records
    HandoverServer::Asked asked = {};  // another gateway of this node requests a volume's lock
    // Runs a task that may wait for the storage of pool `uid`; empty: it runs at once.
    std::function<void(const std::string& uid, std::function<void()> task)> run_later = {};
  };
  explicit PoolTable(Setup setup) : setup_(std::move(setup)) {}

  // The executor's group of all tasks that may wait for the storage of pool `uid`.
  static std::string group_of(const std::string& uid) { return "pool " + uid; }

  // True: the pool is nearly full, and was not before. Error: the definition is refused.
  Result<bool> put(const wire::DesiredPool& pool);
  void remove(const std::string& uid);
  // May wait for the pool's storage. Error: not a pool of this gateway, or it can't be used.
  Result<std::shared_ptr<StoragePool>> open(const std::string& uid);
  std::vector<std::string> uids() const;
  // The pools that were added, or changed their location, since the last call.
  std::vector<std::string> take_new();
  // For open pools; call it about once a second. Waits for no storage itself.
  void tick();

 private:
  struct Pool {
    explicit Pool(std::string u) : uid(std::move(u)) {}
    const std::string uid;
    std::atomic<bool> ticking = false;  // a tick is queued or runs
    wire::DesiredPool desired;
    DevicePool::Devices devices;
    std::mutex mutex;
    std::shared_ptr<StoragePool> open;
  };
  Result<std::shared_ptr<StoragePool>> open_as(const wire::DesiredPool& pool,
                                               const DevicePool::Devices& devices) const;
  void run_later(const std::string& uid, std::function<void()> task) const;
  // Former pools whose storage no volume uses.
  std::vector<std::shared_ptr<Pool>> take_unused();

  const Setup setup_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Pool>> pools_;
  // Changed or removed pools that still have a volume's storage. Their ticks wake waiting volumes.
  std::vector<std::shared_ptr<Pool>> former_;
  std::set<std::string> new_;
};

}  // namespace sluice::control
