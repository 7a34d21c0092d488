// Probes storage pools and reports their state. Each probe belongs to the group of its pool,
// because a filesystem may hang.
//
// Threads: any.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/executor.h"
#include "control/volume/pool_table.h"

namespace sluice::control {

class PoolProber {
 public:
  // `report`: called on any thread, also later when a pool reports a change by itself.
  PoolProber(PoolTable& pools, Executor& executor,
             std::function<void(const wire::PoolObserved&)> report)
      : pools_(pools), executor_(executor), report_(std::move(report)) {}

  // A pool whose probe is running is probed once more afterwards, because it may have changed.
  void probe(const std::vector<std::string>& uids);

 private:
  void begin(const std::string& uid);
  void probe_now(const std::string& uid);

  PoolTable& pools_;
  Executor& executor_;
  const std::function<void(const wire::PoolObserved&)> report_;
  std::mutex mutex_;
  std::map<std::string, bool> under_way_;  // by uid: whether another probe follows
};

}  // namespace sluice::control
