#include "config/volumes.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "backend/spec.h"
#include "base/limits.h"
#include "base/log.h"
#include "config/uuid.h"
#include "unit/unit.h"
#include "unit/write_cache.h"

namespace sluice::config {
namespace {

constexpr lun::UnitAttention kModeParametersChanged{0x2a, 0x01};  // SPC-5 table 51

lun::UnitIdentity identity_of(const LunConfig& lun) {
  lun::UnitIdentity identity;
  identity.uuid = lun.uuid;
  identity.serial = format_uuid(lun.uuid);
  std::erase(identity.serial, '-');
  identity.product = lun.product;
  identity.oui = lun.oui;
  identity.block_size = lun.spec.block_size;
  identity.physical_block_size = lun.physical_block_size;
  return identity;
}

// Calls `change` with each LUN until one fails; the error names that LUN.
template <class Change>
Result<void> for_each_lun(const Config& config, Change change) {
  for (const TargetConfig& target : config.targets) {
    for (const LunConfig& lun : target.luns) {
      const Result<void> done = change(lun);
      if (!done) return Error{desired::LunName{target.iqn, lun.id}.text() + ": " + done.error()};
    }
  }
  return {};
}

Result<void> set_cache(lun::Unit& unit, bool on) {
  const bool was = unit.write_cache();
  Result<void> done = lun::set_write_cache(unit, on);
  // If a host has set it already, nothing changes.
  if (done && was != on) unit.attached().raise(kModeParametersChanged, nullptr);
  return done;
}

// A device without a configured size has its current size. An unresponsive device must not block
// other changes (DESIGN R15).
bool follows_device(const LunConfig& lun) {
  return (backend::is_device(lun.spec) || lun.spec.kind == "rbd") && lun.spec.size == 0;
}

}  // namespace

Result<void> Volumes::prepare(const Changes& changes) {
  Result<ByUuid> opened = open(changes);
  if (!opened) return Error{opened.error()};
  const ByUuid& units = opened.value();
  const auto unit_of = [&](const LunConfig& lun) -> lun::Unit& {
    return *units.at(format_uuid(lun.uuid));
  };
  const Result<void> resized = for_each_lun(changes.in_force, [&](const LunConfig& lun) {
    const uint64_t size = lun.spec.size;
    const bool differs =
        changes.resizes.contains(lun.uuid) && size != unit_of(lun).backend().size_bytes();
    return differs ? unit_of(lun).resize(size) : Result<void>();
  });
  if (!resized) return Error{resized.error()};
  const Result<void> cached = for_each_lun(changes.in_force, [&](const LunConfig& lun) {
    const bool differs = changes.caches.contains(lun.uuid);
    return differs ? set_cache(unit_of(lun), lun.spec.write_cache) : Result<void>();
  });
  if (!cached) return Error{cached.error()};
  for (const TargetConfig& target : changes.in_force.targets) {
    for (const LunConfig& lun : target.luns) {
      if (!follows_device(lun) || changes.opens.contains(lun.uuid)) continue;
      const Result<void> done = unit_of(lun).resize(0);
      if (done) continue;
      log::warning("a LUN keeps its size",
                   {{"error", desired::LunName{target.iqn, lun.id}.text() + ": " + done.error()}});
    }
  }
  next_ = std::move(opened).value();
  return {};
}

Result<Volumes::ByUuid> Volumes::open(const Changes& changes) {
  if (!changes.opens.empty()) wait_for_leaving();
  ByUuid units;
  const Result<void> done =
      for_each_lun(changes.in_force, [&](const LunConfig& lun) -> Result<void> {
        const std::string uuid = format_uuid(lun.uuid);
        const auto present = units_.find(uuid);
        if (present != units_.end() && !changes.opens.contains(lun.uuid)) {
          units[uuid] = present->second;
          return {};
        }
        Result<std::shared_ptr<lun::Unit>> unit = open_one(lun);
        if (!unit) return Error{unit.error()};
        units[uuid] = std::move(unit).value();
        return {};
      });
  if (!done) return Error{done.error()};
  return units;
}

// A LUN that went and comes again would find its file locked by itself.
void Volumes::wait_for_leaving() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(limits::kUnitLeaves);
  for (;;) {
    std::erase_if(leaving_, [](const auto& unit) { return unit.expired(); });
    if (leaving_.empty() || std::chrono::steady_clock::now() >= end) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Result<std::shared_ptr<lun::Unit>> Volumes::open_one(const LunConfig& lun) {
  Result<std::unique_ptr<backend::Backend>> backend = setup_.open(lun.spec);
  if (!backend) return Error{backend.error()};
  auto unit = std::make_shared<lun::Unit>(identity_of(lun), std::move(backend).value(),
                                          setup_.reactors, setup_.store);
  // Reservations kept over power loss (APTPL) hold before the first host comes in.
  const Result<void> restored = unit->restore_reservations();
  if (!restored) return Error{restored.error()};
  return unit;
}

void Volumes::leave_unused() {
  for (const auto& [uuid, unit] : units_) {
    const auto stays = next_.find(uuid);
    if (stays != next_.end() && stays->second == unit) continue;
    unit->raise_gate(lun::Unit::kRemoved);
    leaving_.push_back(unit);
  }
  units_ = next_;
}

Result<std::shared_ptr<lun::Unit>> Volumes::unit_for(const std::string&, const desired::Lun& lun) {
  const auto at = next_.find(lun.volume);
  if (at == next_.end()) return Error{"there is no volume " + lun.volume};
  return at->second;
}

}  // namespace sluice::config
