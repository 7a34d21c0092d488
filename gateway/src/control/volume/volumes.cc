#include "control/volume/volumes.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "base/boot_clock.h"
#include "base/hex.h"
#include "base/log.h"
#include "scsi/identity.h"

namespace sluice::control {
namespace {

constexpr uint64_t kNow = 0;  // a step without delay; it does not invalidate others

Executor::Strand strand_of_volume(const std::string& uid, const std::string& pool) {
  return {PoolTable::group_of(pool), "volume " + uid};
}

}  // namespace

Result<lun::UnitIdentity> identity_of(const wire::DesiredVolume& volume) {
  lun::UnitIdentity identity;
  const auto uuid = uuid_of(volume.uid());
  if (!uuid || uuid_text(*uuid) != volume.uid()) {
    return Error{"uid \"" + volume.uid() + "\" is no UUID in lower case"};
  }
  identity.uuid = *uuid;
  if (volume.block_size() != 512 && volume.block_size() != 4096) {
    return Error{"block size " + std::to_string(volume.block_size()) + " is not 512 or 4096"};
  }
  if (volume.size_bytes() <= 0 || volume.size_bytes() % volume.block_size() != 0) {
    return Error{"size " + std::to_string(volume.size_bytes()) +
                 " is no multiple of the block size"};
  }
  identity.block_size = static_cast<uint32_t>(volume.block_size());
  identity.serial = volume.serial_number();
  // The designator itself says how it was formed, whatever the cluster's setting is now.
  const std::string& naa = volume.naa();
  if (naa.size() == 32) {
    for (size_t i = 1; i < 7; ++i) {
      const int digit = hex_value(naa[i]);
      identity.oui = identity.oui << 4 | static_cast<uint32_t>(std::max(digit, 0));
    }
  }
  scsi::Identity shown;
  shown.uuid = identity.uuid;
  shown.oui = identity.oui;
  const std::string ours = hex_text(scsi::naa_of(shown).bytes());
  if (ours != naa) {
    return Error{"its NAA designator is " + naa + ", but this gateway's release would show hosts " +
                 ours + "; run releases that belong together"};
  }
  if (identity.serial.empty()) return Error{"it has no serial number"};
  return identity;
}

Volumes::Volumes(Setup setup)
    : setup_(std::move(setup)),
      units_{.reactors = setup_.reactors, .store = setup_.reservations},
      pools_({.services = setup_.services,
              .rbd = setup_.rbd,
              .device_records = setup_.device_records,
              .asked =
                  [this, asks = asks_](const std::string& volume, uint64_t order) {
                    HolderAnswer answer{Yield::kNotHeld, 0};
                    asks->run([&] { answer = asked(volume, order); });
                    return answer;
                  },
              .run_later =
                  [this](const std::string& pool, std::function<void()> task) {
                    setup_.executor.post({PoolTable::group_of(pool)}, std::move(task));
                  }}) {}

// After release_all() has timed out, lock servers exist until the last reference to a storage goes,
// and units may still answer.
Volumes::~Volumes() {
  asks_->close();
  wakes_->close();
}

Result<void> Volumes::put_pool(const wire::DesiredPool& pool) {
  const Result<bool> became_nearly_full = pools_.put(pool);
  if (!became_nearly_full) return Error{became_nearly_full.error()};
  if (became_nearly_full.value()) tell_nearly_full(pool.uid());
  return {};
}

void Volumes::tell_nearly_full(const std::string& pool) {
  if (!setup_.nearly_full) return;
  std::vector<std::shared_ptr<lun::Unit>> units;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [uid, entry] : entries_) {
      if (entry.pool == pool) units.push_back(entry.unit);
    }
  }
  for (const auto& unit : units) setup_.nearly_full(*unit);
}

// --- volumes

Result<void> Volumes::put(const wire::DesiredVolume& volume) {
  if (self_ == 0) return Error{"this gateway's number has not come yet"};
  const Result<lun::UnitIdentity> identity = identity_of(volume);
  if (!identity) return Error{identity.error()};
  const std::string& uid = volume.uid();
  std::shared_ptr<Volume> there = find(uid);
  if (there && unit_to_export(uid) == nullptr) {
    // Its unit is about to disappear permanently. Refused objects are retried.
    return Error{"it was removed, and is still leaving"};
  }
  if (!there) {
    Entry entry;
    entry.pool = volume.pool_uid();
    auto unit = std::make_unique<OwnedUnit>(identity.value(), volume, units_, self_);
    entry.unit = unit->unit();
    entry.volume = std::make_shared<Volume>(
        uid, self_, std::move(unit), static_cast<VolumeServices&>(*this), wake_of(uid, entry.pool));
    entry.unit->watch_epochs([seen = std::weak_ptr(entry.volume)](uint64_t epoch) {
      if (const auto fenced = seen.lock()) fenced->saw_epoch(epoch);
    });
    there = entry.volume;
    const std::lock_guard lock(mutex_);
    entries_.emplace(uid, std::move(entry));
  }
  Result<void> ordered = there->order(volume);
  if (!ordered) return ordered;
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(uid);
  if (at != entries_.end()) at->second.epoch = volume.epoch();
  return {};
}

void Volumes::remove(const std::string& uid) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(uid);
    if (at != entries_.end()) at->second.leaving = true;
  }
  if (const auto volume = find(uid)) volume->remove([this, uid] { remove_entry(uid); });
}

// The process ends. Logged-in hosts see the unit in transition instead of absent: hosts treat an
// absent LUN as lost on every path.
void Volumes::retain_entry(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(uid);
  if (at == entries_.end()) return;
  retained_.push_back(std::move(at->second));
  entries_.erase(at);
}

void Volumes::remove_entry(const std::string& uid) {
  Entry entry;
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(uid);
  if (at == entries_.end()) return;
  at->second.unit->raise_gate(lun::Unit::kRemoved);
  entry = std::move(at->second);
  entries_.erase(at);
  // The volume calls this from step(), so it must be destroyed later.
  const std::string group = PoolTable::group_of(entry.pool);
  setup_.executor.post({group}, [removed = std::move(entry)] {});
}

std::shared_ptr<Volume> Volumes::find(const std::string& uid) const {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(uid);
  return at == entries_.end() ? nullptr : at->second.volume;
}

std::shared_ptr<lun::Unit> Volumes::unit(const std::string& uid) const {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(uid);
  return at == entries_.end() ? nullptr : at->second.unit;
}

std::shared_ptr<lun::Unit> Volumes::unit_to_export(const std::string& uid) const {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(uid);
  return at == entries_.end() || at->second.leaving ? nullptr : at->second.unit;
}

std::vector<std::shared_ptr<lun::Unit>> Volumes::units() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<lun::Unit>> units;
  for (const auto& [uid, entry] : entries_) units.push_back(entry.unit);
  return units;
}

std::vector<std::shared_ptr<Volume>> Volumes::volumes() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Volume>> all;
  for (const auto& [uid, entry] : entries_) all.push_back(entry.volume);
  return all;
}

void Volumes::review_media() {
  for (const auto& volume : volumes()) volume->review_medium();
}

void Volumes::review_contact() {
  for (const auto& volume : volumes()) volume->review_contact();
}

bool Volumes::is_cut_off_from(uint16_t owner) const {
  return setup_.cut_off_from && setup_.cut_off_from(owner);
}

std::vector<wire::VolumeObserved> Volumes::observed() const {
  std::vector<wire::VolumeObserved> all;
  for (const auto& volume : volumes()) {
    if (auto seen = volume->observed()) all.push_back(std::move(*seen));
  }
  return all;
}

void Volumes::saw_epoch(const std::string& uid, uint64_t epoch) {
  if (const auto volume = find(uid)) volume->saw_epoch(epoch);
}

// The store reports only that this gateway's epoch is over, not the new epoch.
void Volumes::fenced(const std::string& uid) {
  uint64_t epoch = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(uid);
    if (at != entries_.end()) epoch = at->second.epoch;
  }
  saw_epoch(uid, epoch + 1);
}

HolderAnswer Volumes::asked(const std::string& uid, uint64_t order) {
  const auto volume = find(uid);
  return volume ? volume->asked(order) : HolderAnswer{Yield::kNotHeld, 0};
}

bool Volumes::release_all(Nanos limit) {
  std::vector<std::string> uids;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [uid, entry] : entries_) uids.push_back(uid);
  }
  for (const std::string& uid : uids) {
    if (const auto volume = find(uid)) volume->remove([this, uid] { retain_entry(uid); });
  }
  const Nanos end = boot_clock_now() + limit;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (entries_.empty()) return true;
    }
    if (boot_clock_now() >= end) {
      const std::lock_guard lock(mutex_);
      for (const auto& [uid, entry] : entries_) {
        log::warning("a volume was not released in time", {{"volume", uid}});
      }
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// --- steps

// While a step hangs, only one more is queued, however often the volume is woken.
std::function<void()> Volumes::wake_of(const std::string& uid, const std::string& pool) {
  return [this, wakes = wakes_, uid, strand = strand_of_volume(uid, pool),
          queued = std::make_shared<std::atomic<bool>>(false)] {
    if (queued->exchange(true)) return;
    wakes->run([&] {
      setup_.executor.post(strand, [this, uid, queued] {
        queued->store(false);
        run_step(uid, kNow);
      });
    });
  };
}

void Volumes::run_step(const std::string& uid, uint64_t step) {
  std::shared_ptr<Volume> volume;
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(uid);
    if (at == entries_.end() || (step != kNow && step != at->second.step)) return;
    volume = at->second.volume;
  }
  const Nanos delay = volume->step(boot_clock_now());
  uint64_t next = 0;
  std::string pool;
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(uid);
    if (at == entries_.end()) return;
    next = ++at->second.step;
    pool = at->second.pool;
  }
  if (delay == Volume::kNever) return;
  setup_.executor.post(
      strand_of_volume(uid, pool), [this, uid, next] { run_step(uid, next); }, delay);
}

// --- VolumeServices

Result<std::shared_ptr<VolumeStorage>> Volumes::storage_of(const wire::DesiredVolume& volume,
                                                           std::function<void()> wake) {
  const Result<std::shared_ptr<StoragePool>> where = pools_.open(volume.pool_uid());
  if (!where) return Error{where.error()};
  return where.value()->storage_of(volume, std::move(wake));
}

void Volumes::load(const Record& beside, uint64_t epoch, bool settle,
                   std::function<void(Loaded)> done) {
  setup_.reservations->load_for(beside, epoch, settle, std::move(done));
}

void Volumes::open_commits(Record record, std::shared_ptr<VolumeStorage> storage) {
  std::string pool;
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(record.volume);
    if (at != entries_.end()) pool = at->second.pool;
  }
  setup_.reservations->open(std::move(record), std::move(storage), PoolTable::group_of(pool));
}

void Volumes::close_commits(const std::string& volume) { setup_.reservations->close(volume); }

void Volumes::report(const wire::VolumeObserved& observed) { setup_.report(observed); }

}  // namespace sluice::control
