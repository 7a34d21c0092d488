// One volume of this gateway; it carries out the role that the control plane orders (DESIGN R1, R2,
// R4, R7). It is a state machine without threads or a clock: step() performs the steps that are
// possible now and returns the time of the next call.
//
// - ACQUIRING: takes the lock -> LOCKED
// - OWNER: lock -> record -> reservations -> claim -> serve -> SERVING
// - RELEASING, another owner in this epoch, or a yielded lock: release -> RELEASED
// - A newer epoch, or a lost lock: fence -> FENCED
// - A step that can't be done -> FAILED
//
// The end is reported only when the storage is closed, because only then the lock is free.
//
// After a volume is closed, or fails to open as owner, that epoch is final. The volume is not
// served again in it, whatever the role becomes, and the report is repeated instead (the rule
// RELEASE_IS_FINAL of controlplane/model-check). RECORD_WINS: under the lock, an order older than
// the epoch recorded beside the data is refused.
//
// Threads: one at a time calls step(); the other members are safe on any thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "control/volume/volume_storage.h"
#include "control/wire.h"
#include "unit/medium_health.h"
#include "unit/role.h"

namespace sluice::control {

// Controls the volume's unit (unit/ownership.h). Callbacks run on any thread.
class LogicalUnitControl {
 public:
  virtual ~LogicalUnitControl() = default;
  virtual void serve(std::unique_ptr<backend::Backend> backend, lun::ReservationState state,
                     uint64_t epoch) = 0;
  virtual void follow(const lun::Role& role) = 0;
  virtual void release(std::function<void(bool flushed)> done) = 0;
  virtual void fence(std::function<void()> done) = 0;
  // Applies size, write cache and QoS of `volume`; `serving`: the unit has a backend.
  virtual Result<void> shape(const wire::DesiredVolume& volume, bool serving) = 0;
  // Of the backend in use, as of the last health check.
  virtual lun::MediumHealth medium_health() const { return {}; }
};

struct Loaded {
  enum class What : uint8_t { kState, kFenced, kFailed } what = What::kFailed;
  lun::ReservationState state;
  uint64_t generation = 0;
  std::string why;
};

// The services of the gateway that a volume uses.
class VolumeServices {
 public:
  virtual ~VolumeServices() = default;
  // Error: why the pool can't be used. `wake`: of the storage.
  virtual Result<std::shared_ptr<VolumeStorage>> storage_of(const wire::DesiredVolume& volume,
                                                            std::function<void()> wake) = 0;
  // Loads reservations; linearizable. `beside`: the record beside the data; if it is newer than the
  // stored state, it is stored and returned. `settle`: an earlier process may have sent a commit of
  // this epoch that has not arrived yet.
  virtual void load(const Record& beside, uint64_t epoch, bool settle,
                    std::function<void(Loaded)> done) = 0;
  // From now on commits are accepted; each is also written beside the data with `update`.
  virtual void open_commits(Record record, std::shared_ptr<VolumeStorage> storage) = 0;
  virtual void close_commits(const std::string& volume) = 0;
  virtual void report(const wire::VolumeObserved& observed) = 0;
};

class Volume : public std::enable_shared_from_this<Volume> {
 public:
  static constexpr Nanos kNever = -1;
  // `wake`: requests a call of step(). Create it with make_shared: answers may arrive after its
  // destruction.
  Volume(std::string uid, uint16_t self, std::unique_ptr<LogicalUnitControl> unit,
         VolumeServices& services, std::function<void()> wake);

  // Error: why this order is rejected.
  Result<void> order(const wire::DesiredVolume& volume);
  // The volume is no longer exported here: releases it. step() calls `on_removed` at the end.
  void remove(std::function<void()> on_removed);
  // Reports that a newer epoch exists (R1, R4).
  void saw_epoch(uint64_t epoch);
  // Reports a served volume again if the health of its medium changed. Call it about once a second.
  void review_medium();
  // Another gateway of this node requests the lock.
  HolderAnswer asked(uint64_t order);
  // The last report; nullopt: nothing to report.
  std::optional<wire::VolumeObserved> observed() const;
  // Why size, cache or QoS do not match the order; empty: they match.
  std::string problem() const;

  // Returns the time of the next call; kNever: only after `wake`.
  Nanos step(Nanos now);

 private:
  // Events since the last step().
  struct Mail {
    std::optional<wire::DesiredVolume> order;
    std::function<void()> on_removed;
    std::optional<uint64_t> yield_to;
    std::optional<bool> released;  // whether it was flushed
    bool fenced = false;
    std::optional<Loaded> loaded;
    uint64_t loaded_epoch = 0;
  };
  // kClosing: until the storage is closed.
  enum class Phase : uint8_t { kIdle, kServing, kReleasing, kFencing, kClosing };
  enum class Lock : uint8_t { kLocked, kWaiting, kPending, kFailed };
  // The report that is sent when the storage is closed.
  struct Ending {
    wire::VolumeState state{};
    uint64_t epoch = 0;
    std::string why;
  };

  void take(Mail mail);
  Nanos step_serving();
  Nanos step_idle(Nanos now);
  Nanos step_acquiring(Nanos now);
  Nanos step_owner(Nanos now);
  void begin_release();
  void begin_fence(const std::string& why);
  Nanos step_closing(Nanos now);
  void ended(wire::VolumeState state, const std::string& why);
  void report_closed();
  void shape_served();
  int64_t capacity() const;  // as reported to the control plane
  void note_problem(const Result<void>& done);
  bool medium_changed() const;  // since the last report of a served volume

  Lock try_lock(Nanos now, std::string* problem);
  Lock taken(std::unique_ptr<backend::Backend> backend, std::string* problem);
  // False: the order is older than the holder's.
  bool ask_for_it(Nanos now, std::string* problem);
  void unlock();
  // False: the storage is still closing; step() is called when it is closed.
  bool release_lock();
  Nanos serve_with(Loaded loaded);
  void begin_claim(uint64_t generation, lun::ReservationState state);
  Nanos claim_and_serve();
  void fail(const std::string& why);
  void close_epoch(wire::VolumeState state, const std::string& why);

  void follow(lun::Standing standing);
  void follow_owner();
  void report(wire::VolumeState state, uint64_t epoch, const std::string& why);
  // Returns a function that requests a call of step(), from any thread.
  std::function<void()> waker();
  template <class Change>
  void mail(Change change);
  // mail() for a callback that may run after the destruction of the volume.
  template <class Change>
  static void mail_to(const std::weak_ptr<Volume>& volume, Change change);

  const std::string uid_;
  const uint16_t self_;
  const std::unique_ptr<LogicalUnitControl> unit_;
  VolumeServices& services_;
  const std::function<void()> wake_;

  // --- used by step() only
  bool ordered_ = false;
  wire::DesiredVolume order_;
  std::function<void()> on_removed_;
  Phase phase_ = Phase::kIdle;
  uint64_t serving_epoch_ = 0;
  uint64_t closed_epoch_ = 0;  // last epoch in which this volume was closed or failed to open
  std::optional<uint64_t> yielded_to_;
  std::optional<lun::Role> role_;
  std::shared_ptr<VolumeStorage> storage_;
  std::unique_ptr<backend::Backend> backend_;  // with the lock, until it is served
  std::optional<Record> record_;               // as found under the lock
  std::optional<Record> claim_;                // the record that is being written
  std::optional<Ending> ending_;
  std::string fence_reason_;
  bool growing_ = false;  // the storage is growing
  bool loading_ = false;
  std::optional<Loaded> loaded_;
  Nanos waits_since_ = 0;
  Nanos ask_at_ = 0;
  // since when the lock's holder does not answer; 0: it answered, or was not asked
  Nanos unanswered_since_ = 0;
  Nanos poll_ = 0;
  uint64_t failed_order_ = 0;  // ACQUIRING failed and was reported

  // --- shared, protected by mutex_
  mutable std::mutex mutex_;
  Mail mail_;
  uint64_t newest_order_ = 0;
  uint64_t newest_epoch_ = 0;
  uint64_t acting_on_ = 0;  // order of the lock's holder
  bool holds_ = false;
  std::optional<wire::VolumeObserved> observed_;
  std::string problem_;
};

}  // namespace sluice::control
