// How a unit's backend, reservations and role change. Order and threads: lun/ownership.cc.
#include <utility>

#include "base/limits.h"
#include "lun/bandwidth.h"
#include "lun/reservations/reservation_contract.h"
#include "lun/unit.h"
#include "lun/unopened.h"

namespace sluice::lun {
namespace {

constexpr UnitAttention kAccessStateChanged{0x2a, 0x06};  // ASYMMETRIC ACCESS STATE CHANGED

}  // namespace

std::shared_ptr<backend::Backend> Unit::shared_backend() const {
  const std::lock_guard lock(mutex_);
  return backend_;
}

std::shared_ptr<ReservationStore> Unit::shared_store() const {
  const std::lock_guard lock(mutex_);
  return store_;
}

Role Unit::role() const {
  const std::lock_guard lock(mutex_);
  return role_;
}

bool Unit::opened() const {
  const std::lock_guard lock(mutex_);
  return opened_;
}

Result<void> Unit::check_medium() const { return shared_backend()->check(); }

bool Unit::write_cache() const { return shared_backend()->write_cache(); }

bool Unit::told_write_cache() const {
  const std::lock_guard lock(mutex_);
  return cache_settling_ || backend_->write_cache();
}

bool Unit::cache_settling() const {
  const std::lock_guard lock(mutex_);
  return cache_settling_ != nullptr;
}

bool Unit::hold() {
  if (held_.fetch_add(1, std::memory_order_relaxed) < limits::kMaxHeldPerUnit) return true;
  unhold();
  return false;
}

void Unit::open_locked(std::shared_ptr<backend::Backend> backend,
                       std::shared_ptr<ReservationStore> store, ReservationState reservations) {
  backend_ = std::move(backend);
  store_ = std::move(store);
  opened_ = true;
  medium_gone_ = false;
  stopped_.store(false, std::memory_order_relaxed);
  update_ready_locked();
  // What MODE SELECT changed at the last owner isn't saved, and went with it (SPC-5 §5.8).
  mode_ = {};
  descriptor_sense_.store(false, std::memory_order_relaxed);
  default_write_cache_ = backend_->write_cache();
  const uint64_t before = blocks();
  take_info_locked();
  if (blocks() != before) raise_attention_locked(kCapacityChanged, nullptr);
  reservations_->release6_any();
  reservations_->set_doubt(nullptr);
  reservations_->replace(std::move(reservations));
  reservations_changed();
}

std::shared_ptr<backend::Backend> Unit::close_locked() {
  opened_ = false;
  const Shape shape{backend_->size_bytes(), backend_->write_cache()};
  auto stand_in = std::make_shared<Unopened>(shape, backend_->info());
  return std::exchange(backend_, std::move(stand_in));
}

void Unit::reshape_locked(Shape shape) {
  if (opened_ || shape.size_bytes < backend_->size_bytes()) return;
  backend_ = std::make_shared<Unopened>(shape, backend_->info());
  default_write_cache_ = shape.write_cache;
  const uint64_t now = shape.size_bytes / identity_.block_size;
  if (blocks_.exchange(now, std::memory_order_acq_rel) != now) {
    raise_attention_locked(kCapacityChanged, nullptr);
  }
}

void Unit::set_role_locked(const Role& role) {
  const bool changed = role.standing != role_.standing || role.owner != role_.owner;
  role_ = role;
  epoch_.store(role.epoch, std::memory_order_relaxed);
  // Nobody was told anything of a unit that just appeared.
  if (std::exchange(placed_, true) && changed) {
    raise_attention_locked(kAccessStateChanged, nullptr);
  }
  if (role.standing == Standing::kOwner) {
    lower_gate(kElsewhere);
  } else {
    raise_gate(kElsewhere);
  }
}

void Unit::stop_serving_locked(bool draining) {
  role_.standing = Standing::kTransitioning;
  // In one step: elsewhere and not draining is a fence.
  gate_.fetch_or(draining ? kElsewhere | kDraining : kElsewhere, std::memory_order_acq_rel);
}

std::vector<std::shared_ptr<Itl>> Unit::living_itls_locked() const {
  std::vector<std::shared_ptr<Itl>> living;
  for (Itl* itl : itls_) {
    if (auto alive = itl->weak_from_this().lock()) living.push_back(std::move(alive));
  }
  return living;
}

void Unit::set_qos(const Qos& qos) {
  bandwidth_->set(qos);
  if (qos.limits()) {
    raise_gate(kLimited);
  } else {
    lower_gate(kLimited);
  }
}

}  // namespace sluice::lun
