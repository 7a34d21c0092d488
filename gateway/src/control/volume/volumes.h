// All volumes of this gateway. It creates units and Volumes, calls step() of each, and finds a
// volume by uid.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/executor.h"
#include "control/volume/callback_gate.h"
#include "control/volume/owned_unit.h"
#include "control/volume/pool_table.h"
#include "control/volume/reservations.h"
#include "control/volume/volume.h"

namespace sluice::control {

// The identity from the control plane. Error: the identity that this gateway would derive for the
// uid differs (DESIGN R13).
Result<lun::UnitIdentity> identity_of(const wire::DesiredVolume& volume);

class Volumes final : private VolumeServices {
 public:
  struct Setup {
    Reactors& reactors;
    Executor& executor;
    std::shared_ptr<StreamReservations> reservations;  // of all units
    std::function<void(const wire::VolumeObserved&)> report;
    PoolServices services;
    std::shared_ptr<PoolKind> rbd;  // null: this gateway has no Ceph pools
    // Called when the pool of a volume is nearly full; may be empty.
    std::function<void(lun::Unit&)> nearly_full;
    std::string device_records = {};  // ControlPlaneConfig::device_records
    // Contact::cut_off_from() at this moment; null: never.
    std::function<bool(uint16_t owner)> cut_off_from = {};
  };
  explicit Volumes(Setup setup);
  // The caller ensures that no task of the executor runs.
  ~Volumes() override;

  void set_self(uint16_t number) { self_ = number; }  // before the first put()
  // Its volumes learn when the pool becomes nearly full. Error: the definition is refused.
  Result<void> put_pool(const wire::DesiredPool& pool);
  PoolTable& pools() { return pools_; }
  // Error: the volume or this order is refused; an earlier order stays in effect.
  Result<void> put(const wire::DesiredVolume& volume);
  // The volume is no longer exported here. Its unit disappears for hosts when the volume is
  // released.
  void remove(const std::string& uid);

  // Null: no such volume; for unit_to_export() also: the volume is being removed.
  std::shared_ptr<lun::Unit> unit(const std::string& uid) const;
  std::shared_ptr<lun::Unit> unit_to_export(const std::string& uid) const;
  std::vector<std::shared_ptr<lun::Unit>> units() const;
  std::vector<wire::VolumeObserved> observed() const;
  // Reports volumes whose medium changed its health; call it about once a second.
  void review_media();
  // Volumes follow changes of cut_off_from(); call it about once a second.
  void review_contact();

  // A command, a peer or the store mentioned a newer epoch.
  void saw_epoch(const std::string& uid, uint64_t epoch);
  void fenced(const std::string& uid);
  HolderAnswer asked(const std::string& uid, uint64_t order);
  // Releases every volume for a shutdown; waits for at most `limit`. False: some volume was not
  // released in time.
  bool release_all(Nanos limit);

 private:
  struct Entry {
    std::string pool;  // uid
    std::shared_ptr<lun::Unit> unit;
    std::shared_ptr<Volume> volume;
    uint64_t epoch = 0;
    bool leaving = false;  // removed, but not released yet
    uint64_t step = 0;     // of several delayed steps only the last one counts
  };

  // --- VolumeServices
  Result<std::shared_ptr<VolumeStorage>> storage_of(const wire::DesiredVolume& volume,
                                                    std::function<void()> wake) override;
  void load(const Record& beside, uint64_t epoch, bool settle,
            std::function<void(Loaded)> done) override;
  void open_commits(Record record, std::shared_ptr<VolumeStorage> storage) override;
  void close_commits(const std::string& volume) override;
  bool is_cut_off_from(uint16_t owner) const override;
  void report(const wire::VolumeObserved& observed) override;

  void tell_nearly_full(const std::string& pool);
  std::vector<std::shared_ptr<Volume>> volumes() const;
  std::shared_ptr<Volume> find(const std::string& uid) const;
  std::function<void()> wake_of(const std::string& uid, const std::string& pool);
  void run_step(const std::string& uid, uint64_t step);
  void retain_entry(const std::string& uid);
  void remove_entry(const std::string& uid);

  const Setup setup_;
  // Calls from lock servers, and from units and storages. These may outlive this object.
  const std::shared_ptr<CallbackGate> asks_ = std::make_shared<CallbackGate>();
  const std::shared_ptr<CallbackGate> wakes_ = std::make_shared<CallbackGate>();
  OwnedUnit::Shared units_;
  uint16_t self_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::vector<Entry> retained_;  // destroyed at the end
  PoolTable pools_;
};

}  // namespace sluice::control
