#include "control/volume/pool_table.h"

#include <algorithm>
#include <utility>

#include "control/local/local_pool.h"

namespace sluice::control {
namespace {

// If not, the pool is opened again; open volumes keep the old one.
bool is_same_storage(const wire::DesiredPool& one, const wire::DesiredPool& other) {
  if (one.has_local() != other.has_local()) return false;
  if (one.has_local()) {
    return one.local().directory() == other.local().directory() &&
           std::equal(one.local().devices().begin(), one.local().devices().end(),
                      other.local().devices().begin(), other.local().devices().end());
  }
  return one.rbd().SerializeAsString() == other.rbd().SerializeAsString();
}

bool is_adopted(const wire::DesiredPool& before, const wire::DesiredPool& now) {
  return before.identity().confirmed_adoptions() != now.identity().confirmed_adoptions();
}

}  // namespace

Result<bool> PoolTable::put(const wire::DesiredPool& pool) {
  if (!pool.has_local() && !(pool.has_rbd() && setup_.rbd)) {
    return Error{
        "this gateway doesn't know pools of this kind; assign the pool to gateways that do"};
  }
  if (pool.has_local() && pool.local().devices().empty() &&
      !pool.local().directory().starts_with('/')) {
    return Error{"a local pool needs an absolute directory, or devices"};
  }
  bool was_nearly_full = false;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Pool>& entry = pools_[pool.uid()];
    was_nearly_full = entry && entry->desired.nearly_full();
    if (!entry || !is_same_storage(entry->desired, pool)) {
      const auto changed = std::make_shared<Pool>(pool.uid());
      changed->devices =
          (entry ? entry->devices : DevicePool::Devices())
              .become({pool.local().devices().begin(), pool.local().devices().end()});
      if (entry) former_.push_back(entry);
      entry = changed;
      new_.insert(pool.uid());
    }
    // A confirmed replacement is probed and reported immediately.
    if (is_adopted(entry->desired, pool)) new_.insert(pool.uid());
    entry->desired = pool;
  }
  return pool.nearly_full() && !was_nearly_full;
}

void PoolTable::remove(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  new_.erase(uid);
  const auto at = pools_.find(uid);
  if (at == pools_.end()) return;
  former_.push_back(std::move(at->second));  // volumes that are being released still use it
  pools_.erase(at);
}

Result<std::shared_ptr<StoragePool>> PoolTable::open(const std::string& uid) {
  std::shared_ptr<Pool> entry;
  wire::DesiredPool desired;
  {
    const std::lock_guard lock(mutex_);
    const auto at = pools_.find(uid);
    if (at == pools_.end()) return Error{"pool " + uid + " is not known to this gateway"};
    entry = at->second;
    desired = entry->desired;
  }
  const std::lock_guard lock(entry->mutex);
  if (entry->open) entry->open->expect(desired);
  if (entry->open && !entry->open->is_current(desired)) entry->open.reset();
  if (entry->open) return entry->open;
  Result<std::shared_ptr<StoragePool>> opened = open_as(desired, entry->devices);
  if (opened) entry->open = opened.value();
  return opened;
}

Result<std::shared_ptr<StoragePool>> PoolTable::open_as(const wire::DesiredPool& pool,
                                                        const DevicePool::Devices& devices) const {
  if (pool.has_rbd()) return setup_.rbd->open(pool, setup_.services);
  if (!pool.local().devices().empty()) {
    auto opened = DevicePool::open(devices, setup_.device_records + '/' + pool.uid(),
                                   setup_.services.incarnation, setup_.asked);
    if (!opened) return Error{opened.error()};
    return std::shared_ptr<StoragePool>(std::move(opened).value());
  }
  ExpectedPool expected{.uid = pool.uid()};
  if (pool.has_identity()) expected.identity = pool.identity();
  expected.others = uids();
  std::erase(expected.others, pool.uid());
  auto opened = PoolDirectory::open(pool.local().directory(), setup_.services.incarnation,
                                    setup_.asked, std::move(expected));
  if (!opened) return Error{opened.error()};
  return std::shared_ptr<StoragePool>(std::make_shared<LocalPool>(std::move(opened).value()));
}

void PoolTable::tick() {
  std::vector<std::shared_ptr<Pool>> pools;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [uid, pool] : pools_) pools.push_back(pool);
    pools.insert(pools.end(), former_.begin(), former_.end());
  }
  for (const auto& pool : pools) {
    if (pool->ticking.exchange(true)) continue;
    run_later(pool->uid, [pool] {
      const std::unique_lock lock(pool->mutex, std::try_to_lock);
      if (lock && pool->open) pool->open->tick();
      pool->ticking = false;
    });
  }
  pools.clear();
  // The destructor may wait for the storage.
  for (std::shared_ptr<Pool>& pool : take_unused()) {
    const std::string uid = pool->uid;
    run_later(uid, [unused = std::move(pool)]() mutable { unused.reset(); });
  }
}

void PoolTable::run_later(const std::string& uid, std::function<void()> task) const {
  setup_.run_later ? setup_.run_later(uid, std::move(task)) : task();
}

std::vector<std::shared_ptr<PoolTable::Pool>> PoolTable::take_unused() {
  std::vector<std::shared_ptr<Pool>> unused;
  const std::lock_guard lock(mutex_);
  std::erase_if(former_, [&](const auto& pool) {
    const std::unique_lock own(pool->mutex, std::try_to_lock);
    if (!own || pool->ticking || pool->open.use_count() > 1) return false;
    unused.push_back(pool);
    return true;
  });
  return unused;
}

std::vector<std::string> PoolTable::uids() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> uids;
  for (const auto& [uid, pool] : pools_) uids.push_back(uid);
  return uids;
}

std::vector<std::string> PoolTable::take_new() {
  const std::lock_guard lock(mutex_);
  const std::set<std::string> taken = std::exchange(new_, {});
  return {taken.begin(), taken.end()};
}

}  // namespace sluice::control
