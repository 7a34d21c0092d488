#include "control/volume/owned_units.h"

#include <mutex>
#include <utility>

#include "control/volume/strand_executor.h"
#include "unit/bandwidth.h"
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

// Volumes run on several threads, but unit/ownership.h permits one call at a time.
class OwnedUnitControl final : public LogicalUnitControl {
 public:
  OwnedUnitControl(std::shared_ptr<lun::Unit> unit, Reactors& reactors,
                   std::shared_ptr<lun::ReservationStore> store, uint16_t self, std::mutex& one)
      : unit_(std::move(unit)),
        reactors_(reactors),
        store_(std::move(store)),
        self_(self),
        one_(one) {}

  void serve(std::unique_ptr<backend::Backend> backend, lun::ReservationState state,
             uint64_t epoch) override {
    const std::lock_guard lock(one_);
    // Under the previous owner a host may have disabled the cache and rely on that (DESIGN R12).
    if (backend->write_cache()) {
      unit_->attached().raise_owners(kModeParametersChanged, nullptr, boot_time());
    }
    lun::serve(*unit_, reactors_, std::move(backend), store_, std::move(state), epoch, self_);
  }
  void follow(const lun::Role& role) override {
    const std::lock_guard lock(one_);
    lun::follow(*unit_, reactors_, role);
  }
  void release(std::function<void(bool)> done) override {
    const std::lock_guard lock(one_);
    lun::release(*unit_, reactors_, std::move(done));
  }
  void fence(std::function<void()> done) override {
    const std::lock_guard lock(one_);
    lun::fence(*unit_, reactors_, std::move(done));
  }

  Result<void> shape(const wire::DesiredVolume& volume, bool serving) override {
    if (const lun::Qos qos = qos_of(volume.qos()); qos != qos_) {
      unit_->set_qos(qos);
      qos_ = qos;
    }
    const lun::Shape shape = shape_of(volume);
    if (!serving) {
      const std::lock_guard lock(one_);
      lun::reshape(*unit_, shape);
      return {};
    }
    const Result<void> cached = order_cache(volume.write_cache());
    const bool grows = shape.size_bytes > unit_->shared_backend()->size_bytes();
    const Result<void> grown = grows ? unit_->resize(shape.size_bytes) : Result<void>();
    return cached ? grown : cached;
  }

  lun::MediumHealth medium_health() const override { return unit_->medium_health(); }

 private:
  // A host may have switched its cache (MODE SELECT); that stays until the order changes. A failed
  // switch is tried again. A switch in progress is not waited for a second time.
  Result<void> order_cache(bool on) {
    if (cache_ == on) return {};
    if (unit_->cache_settling()) return Error{"the write cache is being flushed; check the medium"};
    const bool was = unit_->write_cache();
    Result<void> set = lun::set_write_cache(*unit_, on);
    if (!set) return set;
    cache_ = on;
    if (was != on) unit_->attached().raise_owners(kModeParametersChanged, nullptr, boot_time());
    return {};
  }

  const std::shared_ptr<lun::Unit> unit_;
  Reactors& reactors_;
  const std::shared_ptr<lun::ReservationStore> store_;
  const uint16_t self_;
  std::mutex& one_;
  lun::Qos qos_;
  std::optional<bool> cache_;  // as last ordered
};

class OwnedUnits final : public Units {
 public:
  OwnedUnits(Reactors& reactors, std::shared_ptr<lun::ReservationStore> store)
      : reactors_(reactors), store_(std::move(store)) {}

  std::shared_ptr<lun::Unit> open(const lun::UnitIdentity& identity,
                                  const wire::DesiredVolume& volume) override {
    return lun::open_unopened(identity, shape_of(volume), reactors_.count());
  }
  std::unique_ptr<LogicalUnitControl> control_of(const std::shared_ptr<lun::Unit>& unit,
                                                 uint16_t self) override {
    return std::make_unique<OwnedUnitControl>(unit, reactors_, store_, self, one_);
  }

 private:
  Reactors& reactors_;
  const std::shared_ptr<lun::ReservationStore> store_;
  std::mutex one_;
};

}  // namespace

std::unique_ptr<Units> owned_units(Reactors& reactors,
                                   std::shared_ptr<lun::ReservationStore> store) {
  return std::make_unique<OwnedUnits>(reactors, std::move(store));
}

}  // namespace sluice::control
