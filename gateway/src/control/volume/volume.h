// One volume of this gateway; it carries out the role that the control plane orders (DESIGN R1, R2,
// R4, R7). It is a state machine without threads or a clock: step() performs the steps that are
// possible now and returns the time of the next call. volume_lifecycle.h names the states.
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

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "control/volume/held_lock.h"
#include "control/volume/lock_attempt.h"
#include "control/volume/logical_unit_control.h"
#include "control/volume/volume_inbox.h"
#include "control/volume/volume_lifecycle.h"
#include "control/volume/volume_report.h"
#include "control/volume/volume_services.h"
#include "control/volume/volume_storage.h"
#include "control/wire.h"
#include "unit/role.h"

namespace sluice::control {

class Volume {
 public:
  using State = VolumeLifecycle::State;
  static constexpr Nanos kNever = -1;
  // `wake`: requests a call of step(). It may be called after the volume's destruction.
  Volume(std::string uid, uint16_t self, std::unique_ptr<LogicalUnitControl> unit,
         VolumeServices& services, std::function<void()> wake);

  // Error: why this order is rejected.
  Result<void> order(const wire::DesiredVolume& volume) { return inbox_->order(volume); }
  // The volume is no longer exported here: releases it. step() calls `on_removed` at the end.
  void remove(std::function<void()> on_removed) { inbox_->remove(std::move(on_removed)); }
  // Reports that a newer epoch exists (R1, R4).
  void saw_epoch(uint64_t epoch) { inbox_->saw_epoch(epoch); }
  // Reports the health of the medium of a served volume if it has changed. Call it about once a
  // second. Waits for no medium; any thread.
  void review_medium();
  // Follows a change of is_cut_off_from(owner). Call it about once a second. Any thread.
  void review_contact();
  // Another gateway of this node requests the lock.
  HolderAnswer asked(uint64_t order);
  State state() const { return lifecycle_.state(); }
  // The last report; nullopt: nothing to report.
  std::optional<wire::VolumeObserved> observed() const { return report_.last(); }
  // Why size, cache or QoS do not match the order; empty: they match.
  std::string problem() const { return report_.problem(); }

  // Returns the time of the next call; kNever: only after `wake`.
  Nanos step(Nanos now);

 private:
  // The report that is sent when the storage is closed.
  struct Ending {
    wire::VolumeState state{};
    uint64_t epoch = 0;
    std::string why;
  };

  void take(VolumeInbox::Mail mail);
  void take_order(wire::DesiredVolume order);
  Nanos step_state(Nanos now);
  void assert_invariants() const;

  // --- without storage, or opening it
  Nanos follow_order(Nanos now);
  Nanos step_acquiring(Nanos now);
  Nanos step_owner(Nanos now);
  bool yielded() const;
  LockAttempt::Tried try_lock(Nanos now);
  Nanos claim_and_serve();

  // --- serving
  Nanos step_serving();
  void shape_served();
  bool medium_changed() const;  // since the last report of a served volume
  void begin_release();
  void begin_fence(const std::string& why);

  // --- closing
  void ended(wire::VolumeState state, const std::string& why);
  Nanos step_closing(Nanos now);
  void unlock();
  // Releases lock and storage, then enters `next`, a state without storage. False: the storage is
  // still closing; step() is called when it is closed.
  bool release_storage(State next);
  void fail(const std::string& why);
  void close_epoch(wire::VolumeState state, const std::string& why);
  void report_closed();

  void follow(lun::Standing standing);
  void follow_owner();
  int64_t capacity() const;  // as reported to the control plane
  void report(wire::VolumeState state, uint64_t epoch, const std::string& why);

  const std::string uid_;
  const uint16_t self_;
  const std::unique_ptr<LogicalUnitControl> unit_;
  VolumeServices& services_;
  const std::shared_ptr<VolumeInbox> inbox_;
  VolumeReport report_;
  VolumeLifecycle lifecycle_;

  // The owner to which commands are forwarded, 0: none; and whether this gateway is cut off from
  // it.
  std::atomic<uint16_t> followed_owner_ = 0;
  std::atomic<bool> cut_off_ = false;

  // --- used by step() only
  LockAttempt lock_;
  std::optional<wire::DesiredVolume> order_;  // the newest
  std::function<void()> on_removed_;          // the removal is requested
  uint64_t serving_epoch_ = 0;
  uint64_t closed_epoch_ = 0;  // last epoch in which this volume was closed or failed to open
  std::optional<uint64_t> yielded_to_;
  std::optional<lun::Role> role_;
  std::shared_ptr<VolumeStorage> storage_;
  std::optional<HeldLock> locked_;  // kLocked, kLoading, kClaiming
  std::optional<Ending> ending_;    // kClosing
  std::string fence_reason_;
  bool growing_ = false;       // the storage is growing
  uint64_t failed_order_ = 0;  // ACQUIRING failed and was reported
};

}  // namespace sluice::control
