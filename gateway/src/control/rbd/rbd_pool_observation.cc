// Whether a pool of Ceph is the StoragePool's storage, and what a gateway reports of it.
#include <utility>

#include "control_rbd/rbd_marker.h"
#include "control_rbd/rbd_pool.h"
#include "rbd/pool_facts.h"

namespace sluice::control {

void RbdPool::expect(const wire::DesiredPool& desired) {
  const std::lock_guard lock(mutex_);
  expected_.uid = desired.uid();
  expected_.identity.reset();
  if (desired.has_identity()) expected_.identity = desired.identity();
}

ExpectedPool RbdPool::expected() const {
  const std::lock_guard lock(mutex_);
  return expected_;
}

Result<RbdPool::Storage> RbdPool::identify(rbd::RadosClient& client) const {
  auto pool = client.pool(desired().pool(), desired().rados_namespace());
  if (!pool) return Error{pool.error()};
  auto apart = client.again(**pool);
  if (!apart) return Error{apart.error()};
  Result<Identified> identified = identify_rbd_pool(std::move(apart).value(), expected());
  if (!identified) return Error{identified.error()};
  return Storage{std::move(pool).value(), std::move(identified).value()};
}

void RbdPool::observe(const std::string& uid, std::function<void(wire::PoolObserved)> done) {
  Nanos since = 0;
  {
    const std::lock_guard lock(mutex_);
    looking_.uid = uid;
    looking_.done = done;
    since = looking_.since;
  }
  if (since == 0) return look();
  wire::PoolObserved observed;
  observed.set_uid(uid);
  observed.set_snapshots_supported(true);
  observed.set_problem(name_ + ": Ceph has not answered for " +
                       std::to_string((boot_time() - since) / kSecond) +
                       " s; look at `ceph -s`: placement groups may be inactive");
  done(std::move(observed));
}

void RbdPool::look() {
  {
    const std::lock_guard lock(mutex_);
    if (!looking_.done || connecting_) return;
    // The check under way may have read the pool before the change, so another one follows.
    if (looking_.since != 0) {
      looking_.again = true;
      return;
    }
    looking_.since = boot_time();
  }
  const bool posted =
      rbd::Workers::instance().post(group(), [self = shared_from_this()] { self->look_now(); });
  if (posted) return;
  const std::lock_guard lock(mutex_);
  looking_.since = 0;
}

void RbdPool::look_now() {
  wire::PoolObserved observed = observe();
  std::function<void(wire::PoolObserved)> done;
  bool again = false;
  {
    const std::lock_guard lock(mutex_);
    looking_.since = 0;
    again = std::exchange(looking_.again, false);
    done = looking_.done;
    observed.set_uid(looking_.uid);
  }
  callbacks().run([&] { done(std::move(observed)); });
  if (again) look();
}

wire::PoolObserved RbdPool::observe() {
  std::shared_ptr<rbd::RadosClient> client;
  bool recorded = false;
  wire::PoolObserved observed;
  observed.set_snapshots_supported(true);
  {
    const std::lock_guard lock(mutex_);
    client = client_;
    recorded = recorded_;
    observed.set_problem(problem_);
  }
  if (!client) {
    if (observed.problem().empty()) observed.set_problem(name_ + ": is not connected to Ceph yet");
    return observed;
  }
  const auto facts = rbd::read_pool_facts(*client, desired().pool(), desired().rados_namespace(),
                                          desired().data_pool());
  if (!facts) {
    observed.set_problem(facts.error());
    return observed;
  }
  const Result<Storage> storage = identify(*client);
  if (!storage) {
    observed.set_problem(storage.error());
    return observed;
  }
  const Identified& identified = storage.value().identified;
  if (!identified.doubt.empty()) {
    observed.set_adoptions(storage.value().adoptions());
    observed.set_unidentified(true);
    observed.set_problem(identified.doubt);
    return observed;
  }
  if (identified.marker) {
    observed.set_marker(identified.marker->id);
    observed.set_adoptions(identified.marker->adoptions);
  }
  observed.set_capacity_bytes(static_cast<int64_t>(facts.value().capacity_bytes));
  observed.set_used_bytes(static_cast<int64_t>(facts.value().used_bytes));
  if (!recorded && observed.problem().empty()) {
    observed.set_problem(name_ + ": its client " + client->addresses() +
                         " is not recorded by the control plane yet; volumes wait for that");
  }
  return observed;
}

}  // namespace sluice::control
