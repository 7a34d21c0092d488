#include "control/volume/owned_unit.h"

#include <utility>

#include "base/boot_clock.h"
#include "unit/closing.h"
#include "unit/ownership.h"
#include "unit/write_cache.h"

namespace sluice::control {
namespace {

constexpr lun::UnitAttention kModeParametersChanged{0x2a, 0x01};  // SPC-5 table 51

lun::Shape shape_of(const wire::DesiredVolume& volume) {
  return {static_cast<uint64_t>(volume.size_bytes()), volume.write_cache()};
}

lun::Qos qos_of(const wire::DesiredQos& qos) {
  const auto count = [](int64_t n) { return n > 0 ? static_cast<uint64_t>(n) : uint64_t{0}; };
  return {count(qos.iops()), count(qos.iops_burst()), count(qos.bytes_per_second()),
          count(qos.bytes_burst())};
}

}  // namespace

OwnedUnit::OwnedUnit(const lun::UnitIdentity& identity, const wire::DesiredVolume& volume,
                     Shared& shared, uint16_t self)
    : shared_(shared),
      self_(self),
      unit_(lun::open_unopened(identity, shape_of(volume), shared.reactors.count())) {}

void OwnedUnit::serve(std::unique_ptr<backend::Backend> backend, lun::ReservationState state,
                      uint64_t epoch) {
  const std::lock_guard lock(shared_.role_changes);
  // Under the previous owner a host may have disabled the cache and rely on that (DESIGN R12).
  if (backend->write_cache()) {
    unit_->attached().raise_owners(kModeParametersChanged, nullptr, boot_clock_now());
  }
  lun::serve(*unit_, shared_.reactors, std::move(backend), shared_.store, std::move(state), epoch,
             self_);
}

void OwnedUnit::follow(const lun::Role& role) {
  const std::lock_guard lock(shared_.role_changes);
  lun::follow(*unit_, shared_.reactors, role);
}

void OwnedUnit::release(std::function<void(bool)> done) {
  const std::lock_guard lock(shared_.role_changes);
  lun::release(*unit_, shared_.reactors, std::move(done));
}

void OwnedUnit::fence(std::function<void()> done) {
  const std::lock_guard lock(shared_.role_changes);
  lun::fence(*unit_, shared_.reactors, std::move(done));
}

Result<void> OwnedUnit::shape(const wire::DesiredVolume& volume, bool serving) {
  if (const lun::Qos qos = qos_of(volume.qos()); qos != qos_) {
    unit_->set_qos(qos);
    qos_ = qos;
  }
  const lun::Shape shape = shape_of(volume);
  if (!serving) {
    const std::lock_guard lock(shared_.role_changes);
    lun::reshape(*unit_, shape);
    return {};
  }
  const Result<void> cached = order_cache(volume.write_cache());
  const bool grows = shape.size_bytes > unit_->shared_backend()->size_bytes();
  const Result<void> grown = grows ? unit_->resize(shape.size_bytes) : Result<void>();
  return cached ? grown : cached;
}

// A host may have switched its cache (MODE SELECT); that stays until the order changes. A failed
// switch is tried again. A switch in progress is not waited for a second time.
Result<void> OwnedUnit::order_cache(bool on) {
  if (cache_ == on) return {};
  if (unit_->cache_settling()) return Error{"the write cache is being flushed; check the medium"};
  const bool was = unit_->write_cache();
  Result<void> set = lun::set_write_cache(*unit_, on);
  if (!set) return set;
  cache_ = on;
  if (was != on) unit_->attached().raise_owners(kModeParametersChanged, nullptr, boot_clock_now());
  return {};
}

}  // namespace sluice::control
