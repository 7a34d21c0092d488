// All volumes of this gateway and the pools they live in: makes units and Volumes, gives each its
// turns, and finds the one that somebody asks about.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "control/local/device_pool.h"
#include "control/local/local_pool.h"
#include "control/volume/reservations.h"
#include "control/volume/storage_pool.h"
#include "control/volume/turns.h"
#include "control/volume/units.h"
#include "control/volume/volume.h"

namespace sluice::control {

// Identity as the control plane gives it. Error: what this gateway would tell hosts for the uid
// isn't that (DESIGN R13).
Result<lun::UnitIdentity> identity_of(const wire::DesiredVolume& volume);

class Volumes final : private VolumeServices {
 public:
  struct Setup {
    Units& units;
    Turns& turns;
    StreamReservations& reservations;
    std::function<void(const wire::VolumeObserved&)> report;
    PoolServices services;
    std::shared_ptr<PoolKind> rbd;  // null: this gateway has no pools of Ceph
    // A volume's pool has become nearly full; may be empty.
    std::function<void(lun::Unit&)> nearly_full;
    std::string device_records = {};  // ControlPlaneConfig::device_records
  };
  explicit Volumes(Setup setup) : setup_(std::move(setup)) {}

  void set_self(uint16_t number) { self_ = number; }  // before the first put()
  Result<void> put_pool(const wire::DesiredPool& pool);
  void remove_pool(const std::string& uid);
  // Error: the volume, or this order, is refused; an earlier one holds on.
  Result<void> put(const wire::DesiredVolume& volume);
  // No longer exported here; a unit that has it is gone for hosts when it has let go.
  void remove(const std::string& uid);

  // None: it is not here; or, to be exported, it is leaving.
  std::shared_ptr<lun::Unit> unit(const std::string& uid) const;
  std::shared_ptr<lun::Unit> unit_to_export(const std::string& uid) const;
  std::vector<std::shared_ptr<lun::Unit>> units() const;
  std::vector<wire::VolumeObserved> observed() const;
  // Error: it is none of this gateway's, or can't be used.
  Result<std::shared_ptr<StoragePool>> pool(const std::string& uid);
  std::vector<std::string> pools() const;
  // Those that have come, or have another place, since this was asked last.
  std::vector<std::string> take_new_pools();
  // Of pools that are open; about once a second.
  void tick_pools();
  // Reports volumes again whose medium changed its health; about once a second.
  void review_media();

  // A command, a peer or the store has shown a newer epoch.
  void saw_epoch(const std::string& uid, uint64_t epoch);
  void fenced(const std::string& uid);
  HolderAnswer asked(const std::string& uid, uint64_t order);
  // Releases every volume, as for a shutdown; `limit` at most. False: some had not let go.
  bool release_all(Nanos limit);

 private:
  struct Entry {
    std::string pool;
    std::shared_ptr<lun::Unit> unit;
    std::shared_ptr<Volume> volume;
    uint64_t epoch = 0;
    bool leaving = false;  // removed, and not gone yet
    uint64_t turn = 0;     // of turns with a delay, the last one alone counts
  };
  struct Pool {
    wire::DesiredPool desired;
    DevicePool::Devices devices;
    std::mutex mutex;
    std::shared_ptr<StoragePool> open;
  };

  // --- VolumeServices
  Result<std::shared_ptr<Place>> place(const wire::DesiredVolume& volume,
                                       std::function<void()> wake) override;
  void load(const Record& beside, uint64_t epoch, bool settle,
            std::function<void(Loaded)> done) override;
  void open_commits(Record record, std::shared_ptr<Place> place) override;
  void close_commits(const std::string& volume) override;
  void report(const wire::VolumeObserved& observed) override;

  Result<std::shared_ptr<StoragePool>> open_pool(const wire::DesiredPool& pool,
                                                 const DevicePool::Devices& devices);
  void tell_nearly_full(const std::string& pool);
  std::vector<std::shared_ptr<Volume>> volumes() const;
  std::shared_ptr<Volume> find(const std::string& uid) const;
  void wake(const std::string& uid, Nanos delay, uint64_t turn);
  void take_turn(const std::string& uid, uint64_t turn);
  void let_go(const std::string& uid);
  void gone(const std::string& uid);

  const Setup setup_;
  uint16_t self_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::vector<Entry> kept_;  // let go at the end
  std::map<std::string, std::shared_ptr<Pool>> pools_;
  // Changed or removed, while somebody has a place in them: who waits there is woken by their
  // ticks.
  std::vector<std::shared_ptr<Pool>> former_;
  std::set<std::string> new_pools_;
};

}  // namespace sluice::control
