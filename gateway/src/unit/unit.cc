#include "unit/unit.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/hex.h"
#include "base/limits.h"
#include "unit/bandwidth.h"
#include "unit/block_limits.h"
#include "unit/copy_limits.h"
#include "unit/ranges/range_table.h"
#include "unit/reservations/reservation_contract.h"
#include "unit/reservations/reservations.h"
#include "unit/statistics.h"
#include "unit/unopened.h"

namespace sluice::lun {
namespace {

constexpr UnitAttention kAccessStateChanged{0x2a, 0x06};  // ASYMMETRIC ACCESS STATE CHANGED

}  // namespace

Unit::Unit(UnitIdentity identity, std::unique_ptr<backend::Backend> backend, unsigned reactors,
           std::shared_ptr<ReservationStore> store)
    : identity_(std::move(identity)),
      backend_(std::move(backend)),
      store_(std::move(store)),
      default_write_cache_(backend_->write_cache()),
      bandwidth_(std::make_unique<Bandwidth>()),
      attached_(std::make_unique<AttachedNexuses>(mutex_)),
      // Most commands are aligned to 4 KiB.
      ranges_(std::make_shared<RangeTable>(reactors, identity_.block_size >= 4096 ? 0 : 3)),
      reservations_(std::make_unique<Reservations>()),
      statistics_(std::make_unique<UnitStatistics>(reactors)) {
  take_info_locked();
}

Unit::Unit(UnitIdentity identity, Shape shape, unsigned reactors)
    : Unit(std::move(identity), std::make_unique<Unopened>(shape, backend::Info()), reactors,
           nullptr) {
  backend_state_ = BackendState::kAbsent;
  had_role_ = false;
  role_.standing = Standing::kTransitioning;
  raise_gate(kNotOwner);
}

Unit::~Unit() = default;

bool Unit::read_only() const { return gate() & kWriteProtected; }

std::string Unit::uuid_text() const { return sluice::uuid_text(identity_.uuid); }

Result<void> Unit::resize(uint64_t bytes) {
  // A device may have grown by any number of bytes.
  if (bytes % identity_.block_size != 0) {
    return Error{"size " + std::to_string(bytes) + " is not a multiple of the block size " +
                 std::to_string(identity_.block_size)};
  }
  const auto backend = shared_backend();
  if (auto grown = backend->resize(bytes); !grown) return grown;
  const uint64_t blocks = backend->size_bytes() / identity_.block_size;
  if (blocks_.exchange(blocks, std::memory_order_acq_rel) != blocks) {
    attached_->raise(kCapacityChanged, nullptr);
  }
  return {};
}

// Adopts the backend's properties and the values derived from them.
void Unit::take_info_locked() {
  const backend::Info& info = backend_->info();
  blocks_ = backend_->size_bytes() / identity_.block_size;
  support_.unmap = info.thin && info.discard_granularity != 0;
  limits_ = block_limits(identity_, info, support_.unmap);
  support_.write_atomic = limits_.max_atomic_transfer != 0;
  support_.pass_through = info.takes_cdbs;
  if (info.read_only) {
    raise_gate(kWriteProtected);
  } else {
    lower_gate(kWriteProtected);
  }
}

void Unit::update_ready_locked() {
  if (!medium_.ready || stopped_.load(std::memory_order_relaxed)) {
    raise_gate(kNotReady);
  } else {
    lower_gate(kNotReady);
  }
}

void Unit::poll_health() {
  const auto backend = shared_backend();
  const Result<void> check = backend->check();
  MediumHealth found{.ready = check.ok(),
                     .problem = check.ok() ? backend->location_problem() : check.error()};
  const std::lock_guard lock(mutex_);
  // A backend that was closed meanwhile does not describe the present one.
  if (backend == backend_) take_health_locked(std::move(found));
}

void Unit::poll_progress(Nanos now) {
  has_errors_.store(errors_.has_errors(statistics_->failures(Failure::kMedium), now),
                    std::memory_order_relaxed);
  const UnitStatistics::Requests requests = statistics_->requests();
  has_hung_request_.store(statistics_->has_hung_request(requests, now), std::memory_order_relaxed);
  const bool found = progress_.is_stuck(requests.in_progress(), requests.completed, now);
  completed_at_poll_.store(requests.completed, std::memory_order_relaxed);
  if (found == stuck()) return;
  found ? raise_gate(kStuck) : lower_gate(kStuck);
}

bool Unit::still_stuck() const {
  return stuck() &&
         statistics_->requests().completed == completed_at_poll_.load(std::memory_order_relaxed);
}

MediumHealth Unit::medium_health() const {
  const std::lock_guard lock(mutex_);
  return {.ready = medium_.ready,
          .problem = medium_.problem,
          .stuck = medium_hangs(),
          .errors = has_errors_.load(std::memory_order_relaxed)};
}

void Unit::take_health_locked(MediumHealth found) {
  medium_ = std::move(found);
  update_ready_locked();
  // Another client may have grown it (a Ceph image).
  const uint64_t now = backend_->size_bytes() / identity_.block_size;
  if (now > blocks_.load(std::memory_order_relaxed)) {
    blocks_.store(now, std::memory_order_release);
    attached_->raise_locked(kCapacityChanged, nullptr);
  }
}

void Unit::medium_lost() {
  std::lock_guard lock(mutex_);
  medium_ = {.ready = false, .problem = "a command found that the medium is gone"};
  update_ready_locked();
}

void Unit::set_stopped(bool stopped) {
  std::lock_guard lock(mutex_);
  stopped_.store(stopped, std::memory_order_relaxed);
  update_ready_locked();
}

Unit::ModeParameters Unit::mode() const {
  std::lock_guard lock(mutex_);
  return mode_;
}

void Unit::set_mode(ModeParameters mode) {
  std::lock_guard lock(mutex_);
  mode_ = mode;
  descriptor_sense_.store(mode.descriptor_sense, std::memory_order_relaxed);
  if (mode.software_write_protect || backend_->info().read_only) {
    raise_gate(kWriteProtected);
  } else {
    lower_gate(kWriteProtected);
  }
}

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
  return opened_locked();
}

Result<void> Unit::check_medium() const { return shared_backend()->check(); }

bool Unit::write_cache() const { return shared_backend()->write_cache(); }

bool Unit::reported_write_cache() const {
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
  enter_locked(BackendState::kOpen);
  medium_ = {};
  stopped_.store(false, std::memory_order_relaxed);
  update_ready_locked();
  // MODE SELECT changes at the previous owner are not saved, and are lost with it (SPC-5 §5.8).
  mode_ = {};
  descriptor_sense_.store(false, std::memory_order_relaxed);
  default_write_cache_ = backend_->write_cache();
  const uint64_t before = blocks();
  take_info_locked();
  if (blocks() != before) attached_->raise_locked(kCapacityChanged, nullptr);
  reservations_->release6_any();
  reservations_->set_doubt(nullptr);
  reservations_->replace(std::move(reservations));
  reservations_changed();
}

// The states form a cycle. A unit without a backend also begins in it, and one with a backend of
// its own stays in kOpen.
void Unit::enter_locked(BackendState next) {
  using enum BackendState;
  [[maybe_unused]] const BackendState from = backend_state_;
  assert((from == kAbsent && next == kOpen) || (from == kOpen && next == kLeaving) ||
         (from == kLeaving && next == kClosing) || (from == kClosing && next == kAbsent));
  backend_state_ = next;
}

void Unit::begin_closing_locked(std::shared_ptr<Closing> closing, bool draining) {
  enter_locked(BackendState::kLeaving);
  closing_ = std::move(closing);
  role_.standing = Standing::kTransitioning;
  // In one step: kNotOwner without kDraining means fenced.
  gate_.fetch_or(draining ? kNotOwner | kDraining : kNotOwner, std::memory_order_acq_rel);
}

void Unit::end_closing_locked() {
  enter_locked(BackendState::kAbsent);
  closing_.reset();
}

std::shared_ptr<backend::Backend> Unit::detach_locked() {
  enter_locked(BackendState::kClosing);
  const Shape shape{backend_->size_bytes(), backend_->write_cache()};
  auto stand_in = std::make_shared<Unopened>(shape, backend_->info());
  return std::exchange(backend_, std::move(stand_in));
}

void Unit::reshape_locked(Shape shape) {
  if (opened_locked() || shape.size_bytes < backend_->size_bytes()) return;
  backend_ = std::make_shared<Unopened>(shape, backend_->info());
  default_write_cache_ = shape.write_cache;
  const uint64_t now = shape.size_bytes / identity_.block_size;
  if (blocks_.exchange(now, std::memory_order_acq_rel) != now) {
    attached_->raise_locked(kCapacityChanged, nullptr);
  }
}

void Unit::set_role_locked(const Role& role) {
  const bool changed = role.standing != role_.standing || role.owner != role_.owner;
  role_ = role;
  epoch_.store(role.epoch, std::memory_order_relaxed);
  // No host has seen a state of a new unit yet.
  if (std::exchange(had_role_, true) && changed) {
    attached_->raise_locked(kAccessStateChanged, nullptr);
  }
  if (role.standing == Standing::kOwner) {
    lower_gate(kNotOwner);
  } else {
    raise_gate(kNotOwner);
  }
}

void Unit::set_qos(const Qos& qos) {
  bandwidth_->set(qos);
  if (qos.limits()) {
    raise_gate(kLimited);
  } else {
    lower_gate(kLimited);
  }
}

void Unit::reservations_changed() {
  const uint64_t now =
      reservations_->version() * kGateStep | (reservations_->held() ? uint64_t{kReserved} : 0);
  constexpr uint64_t kOthers = (kGateStep - 1) & ~uint64_t{kReserved};
  // In one step: otherwise a nexus could record a new version as open with an old flag.
  uint64_t word = gate_.load(std::memory_order_relaxed);
  while (!gate_.compare_exchange_weak(word, (word & kOthers) | now, std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
  }
}

Result<void> Unit::restore_reservations() {
  if (!store_) return {};
  Result<ReservationState> state = store_->load(uuid_text());
  if (!state) return Error{state.error()};
  const std::lock_guard lock(mutex_);
  reservations_->replace(std::move(state).value());
  reservations_changed();
  return {};
}

scsi::Identity Unit::scsi_identity() const {
  scsi::Identity identity;
  identity.uuid = identity_.uuid;
  identity.serial = identity_.serial;
  identity.product = identity_.product;
  identity.oui = identity_.oui;
  return identity;
}

scsi::Geometry Unit::geometry() const {
  scsi::Geometry g;
  g.blocks = std::max<uint64_t>(blocks(), 1);
  g.block_size = identity_.block_size;
  g.physical_block_size = std::max(identity_.physical_block_size, identity_.block_size);
  return g;
}

scsi::Provisioning Unit::provisioning() const { return provisioning_of(backend_->info()); }

scsi::Provisioning Unit::provisioning_of(const backend::Info& info) const {
  scsi::Provisioning p;
  p.thin = info.thin;
  p.unmap = support_.unmap;
  p.write_same_unmap = support_.unmap;
  p.reads_zeros = info.thin && info.discard_zeroes;
  return p;
}

scsi::InquiryUnit Unit::inquiry(const scsi::PortIdentity& port) const {
  scsi::InquiryUnit unit;
  unit.identity = scsi_identity();
  unit.port = port;
  unit.copy = copy_limits(identity_.block_size);
  unit.volatile_cache = true;  // MODE SELECT can turn it on
  const std::lock_guard lock(mutex_);
  unit.support = support_;
  unit.limits = limits_;
  unit.characteristics.rotational = backend_->info().rotational;
  unit.provisioning = provisioning_of(backend_->info());
  return unit;
}

void Unit::add_target(const std::shared_ptr<ExportingTarget>& target) {
  std::lock_guard lock(mutex_);
  std::erase_if(targets_, [&target](const std::weak_ptr<ExportingTarget>& known) {
    const auto alive = known.lock();
    return !alive || alive == target;
  });
  targets_.push_back(target);
}

std::vector<std::shared_ptr<ExportingTarget>> Unit::targets_locked() const {
  std::vector<std::shared_ptr<ExportingTarget>> living;
  for (const auto& target : targets_) {
    if (auto alive = target.lock()) living.push_back(std::move(alive));
  }
  return living;
}

void Unit::reset_state(UnitAttention ua, Nanos now) {
  // Restores the default mode parameters (SPC-5 §5.8: none are saved).
  set_mode(ModeParameters());
  set_stopped(false);
  // In one step: a nexus must not find a reservation released before the reset is reported to it.
  const std::lock_guard lock(mutex_);
  reservations_->release6_any();
  reservations_changed();
  attached_->raise_owners_locked(ua, nullptr, now);
}

}  // namespace sluice::lun
