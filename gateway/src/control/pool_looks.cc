#include "control/pool_looks.h"

#include <utility>

namespace sluice::control {

void PoolLooks::look(const std::vector<std::string>& uids) {
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

void PoolLooks::begin(const std::string& uid) {
  turns_.post("look at " + uid, [this, uid] {
    look_now(uid);
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

void PoolLooks::look_now(const std::string& uid) {
  const Result<std::shared_ptr<StoragePool>> pool = volumes_.pool(uid);
  if (pool) return pool.value()->look_at(uid, tell_);
  wire::PoolObserved observed;
  observed.set_uid(uid);
  observed.set_problem(pool.error());
  tell_(observed);
}

}  // namespace sluice::control
