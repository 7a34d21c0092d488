#include "control_rbd/rbd_pool_probe.h"

#include <utility>

#include "base/boot_clock.h"
#include "rbd/ceph_executor.h"
#include "rbd/pool_facts.h"

namespace sluice::control {

void RbdPoolProbe::observe(const std::string& uid, std::function<void(wire::PoolObserved)> done) {
  Nanos since = 0;
  {
    const std::lock_guard lock(mutex_);
    uid_ = uid;
    done_ = done;
    since = since_;
  }
  if (since == 0) return probe();
  wire::PoolObserved observed;
  observed.set_uid(uid);
  observed.set_snapshots_supported(true);
  observed.set_problem(client_->name() + ": Ceph has not answered for " +
                       std::to_string((boot_clock_now() - since) / kSecond) +
                       " s; look at `ceph -s`: placement groups may be inactive");
  done(std::move(observed));
}

void RbdPoolProbe::probe() {
  if (client_->is_connecting()) return;  // it calls again when it is connected
  {
    const std::lock_guard lock(mutex_);
    if (!done_) return;
    // The probe under way may have read the pool before the change, so another one follows.
    if (since_ != 0) {
      again_ = true;
      return;
    }
    since_ = boot_clock_now();
  }
  const bool posted = rbd::ceph_executor().try_post(
      {client_->group()}, [self = shared_from_this()] { self->probe_now(); });
  if (posted) return;
  const std::lock_guard lock(mutex_);
  since_ = 0;
}

void RbdPoolProbe::probe_now() {
  wire::PoolObserved observed = probed();
  std::function<void(wire::PoolObserved)> done;
  bool again = false;
  {
    const std::lock_guard lock(mutex_);
    since_ = 0;
    again = std::exchange(again_, false);
    done = done_;
    observed.set_uid(uid_);
  }
  client_->callbacks().run([&] { done(std::move(observed)); });
  if (again) probe();
}

wire::PoolObserved RbdPoolProbe::probed() const {
  const PoolClient::Status status = client_->status();
  wire::PoolObserved observed;
  observed.set_snapshots_supported(true);
  observed.set_problem(status.problem);
  if (!status.client) {
    if (observed.problem().empty())
      observed.set_problem(client_->name() + ": is not connected to Ceph yet");
    return observed;
  }
  const auto facts =
      rbd::read_pool_facts(*status.client, client_->desired().pool(),
                           client_->desired().rados_namespace(), client_->desired().data_pool());
  if (!facts) {
    observed.set_problem(facts.error());
    return observed;
  }
  const Result<PoolClient::Storage> storage = client_->identify(*status.client);
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
  if (!status.recorded && observed.problem().empty()) {
    observed.set_problem(client_->name() + ": its client " + status.client->addresses() +
                         " is not recorded by the control plane yet; volumes wait for that");
  }
  return observed;
}

}  // namespace sluice::control
