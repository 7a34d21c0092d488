#include "control/pool_prober.h"

#include <utility>

namespace sluice::control {

void PoolProber::probe(const std::vector<std::string>& uids) {
  for (const std::string& uid : uids) {
    {
      const std::lock_guard lock(mutex_);
      const auto [at, first] = under_way_.try_emplace(uid, false);
      at->second = !first;
      if (!first) continue;
    }
    begin(uid);
  }
}

void PoolProber::begin(const std::string& uid) {
  executor_.post({PoolTable::group_of(uid), "probe"}, [this, uid] {
    probe_now(uid);
    {
      const std::lock_guard lock(mutex_);
      if (!std::exchange(under_way_[uid], false)) {
        under_way_.erase(uid);
        return;
      }
    }
    begin(uid);
  });
}

void PoolProber::probe_now(const std::string& uid) {
  const Result<std::shared_ptr<StoragePool>> pool = pools_.open(uid);
  if (pool) return pool.value()->observe(uid, report_);
  wire::PoolObserved observed;
  observed.set_uid(uid);
  observed.set_problem(pool.error());
  report_(observed);
}

}  // namespace sluice::control
