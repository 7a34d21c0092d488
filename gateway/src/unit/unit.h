// A logical unit: identity, backend and its SCSI state. Handlers are free functions on Unit and
// Command, one file per family of commands, found by scsi::Operation.
//
// Threads: a command runs on its nexus's reactor, so several reactors use one unit. The fast path
// (READ or WRITE without unit attentions or reservation conflicts) accesses only: gate_ (one atomic
// load), AttachedNexus::attention (one atomic load), the reactor's own shard of the range table,
// and the backend. mutex() protects everything else.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "scsi/command_table.h"
#include "scsi/inquiry.h"
#include "scsi/sense.h"
#include "unit/attached_nexuses.h"
#include "unit/attention.h"
#include "unit/change_watch.h"
#include "unit/error_watch.h"
#include "unit/medium_health.h"
#include "unit/progress_watch.h"
#include "unit/role.h"
#include "unit/unit_identity.h"

namespace sluice::lun {

class Bandwidth;
class RangeTable;
class Reservations;
class ReservationStore;
class UnitStatistics;
struct CacheSettling;
struct Closing;
struct Qos;
struct ReservationState;

// Whether a unit has its backend. kAbsent: another gateway may have it.
enum class BackendState : uint8_t {
  kAbsent,   // a stand-in answers for it
  kOpen,     // commands use it
  kLeaving,  // closing waits until nothing uses it any more
  kClosing,  // it is detached, and its close() has not ended
};

class Unit : public std::enable_shared_from_this<Unit> {
 public:
  // `store` may be null: PERSISTENT RESERVE OUT then refuses APTPL (05/26/00).
  Unit(UnitIdentity identity, std::unique_ptr<backend::Backend> backend, unsigned reactors,
       std::shared_ptr<ReservationStore> store);
  // A unit without a backend; its standing is Transitioning (unit/ownership.h).
  Unit(UnitIdentity identity, Shape shape, unsigned reactors);
  ~Unit();

  const UnitIdentity& identity() const { return identity_; }
  // For commands that passed the gate, and for units that always have a backend. Without one it is
  // a stand-in that knows size and cache mode and refuses every request with ENODEV.
  backend::Backend& backend() const { return *backend_; }
  // For other callers; the backend may be closed at any time.
  std::shared_ptr<backend::Backend> shared_backend() const;
  // Capacity in logical blocks.
  uint64_t blocks() const { return blocks_.load(std::memory_order_relaxed); }
  uint32_t block_size() const { return identity_.block_size; }
  bool read_only() const;  // because of the backend, or SWP of the control mode page
  std::mutex& mutex() const { return mutex_; }
  RangeTable& ranges() const { return *ranges_; }
  Reservations& reservations() const { return *reservations_; }
  UnitStatistics& statistics() const { return *statistics_; }
  // The holder of an exclusive range calls changing() before blocks change.
  ChangeWatch& changes() const { return changes_; }
  // May be null. For commands that passed the gate.
  ReservationStore* reservation_store() const { return store_.get(); }
  std::shared_ptr<ReservationStore> shared_store() const;  // for other callers
  // For commands that passed the gate.
  const scsi::Support& support() const { return support_; }
  bool default_write_cache() const { return default_write_cache_; }
  std::string uuid_text() const;         // 8-4-4-4-12 digits, the key in a ReservationStore
  scsi::Identity scsi_identity() const;  // refers to identity()
  // What INQUIRY reports, and handlers therefore enforce. limits() and provisioning() are for
  // commands that passed the gate; inquiry() is for all, and reports what is known without a
  // backend.
  const scsi::BlockLimits& limits() const { return limits_; }
  scsi::InquiryUnit inquiry(const scsi::PortIdentity& port) const;
  scsi::Geometry geometry() const;
  scsi::Provisioning provisioning() const;

  // --- gate: if the word differs from the one a nexus has recorded, its command takes the slow
  // path (commands/gate.cc)
  enum Gate : uint32_t {
    kReserved = 1,  // RESERVE(6) or a persistent reservation is held
    kNotReady = 2,  // medium missing, or stopped by START STOP UNIT
    kWriteProtected = 4,
    kRemoved = 8,    // no longer exported
    kNotOwner = 16,  // its standing is not kOwner
    kDraining = 32,  // releasing: started commands complete here
    kLimited = 64,   // set_qos()
    kStuck = 128,    // poll_progress(): the backend has requests, and completes none
  };
  // With these bits the unit's role or bandwidth decides where a command runs
  // (nexus/command_routing.h).
  static constexpr uint32_t kDetour = kNotOwner | kLimited;
  uint32_t gate() const { return static_cast<uint32_t>(gate_word() % kGateStep); }
  void raise_gate(Gate bit) { gate_.fetch_or(bit, std::memory_order_acq_rel); }
  void lower_gate(Gate bit) { gate_.fetch_and(~uint64_t{bit}, std::memory_order_acq_rel); }
  // The bits of Gate, and above them Reservations::version(). A result that was computed under one
  // word is valid while the word is unchanged.
  static constexpr uint64_t kGateStep = 256;
  uint64_t gate_word() const { return gate_.load(std::memory_order_acquire); }

  // --- ownership (DESIGN R1); unit/ownership.h and unit/closing.h change it
  Role role() const;
  // Of role(). For commands that passed the gate it is this gateway's own epoch.
  uint64_t epoch() const { return epoch_.load(std::memory_order_relaxed); }
  // `told` is called with an epoch newer than this gateway's, on any reactor: such a gateway is
  // fenced (R1). Call it before the unit is exported.
  void watch_epochs(std::function<void(uint64_t epoch)> on_newer) {
    newer_epoch_ = std::move(on_newer);
  }
  void tell_epoch(uint64_t epoch) const {
    if (epoch > this->epoch() && newer_epoch_) newer_epoch_(epoch);
  }
  bool opened() const;  // it has a backend: kOpen or kLeaving
  // Counts a command that waits in this gateway; at most limits::kMaxHeldPerUnit. False: limit
  // reached.
  bool hold();
  void unhold() { held_.fetch_sub(1, std::memory_order_relaxed); }
  // kAbsent to kOpen. The caller holds the mutex, as for all functions with _locked.
  void open_locked(std::shared_ptr<backend::Backend> backend,
                   std::shared_ptr<ReservationStore> store, ReservationState reservations);
  std::shared_ptr<backend::Backend> shared_backend_locked() const { return backend_; }
  void reshape_locked(Shape shape);
  void set_role_locked(const Role& role);  // also sets the gate; raises 2A/06 as R10 requires
  BackendState backend_state_locked() const { return backend_state_; }
  // kOpen to kLeaving. Sets Transitioning; `draining`: started commands complete here.
  void begin_closing_locked(std::shared_ptr<Closing> closing, bool draining);
  // kLeaving to kClosing. Returns the backend; the unit has a stand-in.
  std::shared_ptr<backend::Backend> detach_locked();
  void end_closing_locked();                                            // kClosing to kAbsent
  std::shared_ptr<Closing> closing_locked() const { return closing_; }  // in kLeaving and kClosing

  // --- quality of service at the owner; unit/bandwidth.h
  void set_qos(const Qos& qos);
  Bandwidth& bandwidth() const { return *bandwidth_; }

  // --- users
  // The I_T_L nexuses, and the unit attentions raised on them.
  AttachedNexuses& attached() const { return *attached_; }
  // A target that exports this unit, or has done so.
  void add_target(const std::shared_ptr<ExportingTarget>& target);
  std::vector<std::shared_ptr<ExportingTarget>> targets_locked() const;

  // --- changes from outside
  Result<void> resize(uint64_t bytes);  // grows; raises 2A/09 on every nexus
  void poll_health();                   // control thread, about once a second
  // Control thread, every limits::kStuckPoll: finds out whether the backend is stuck, and whether
  // commands end with errors of the medium, without a call that may wait for it.
  void poll_progress(Nanos now);
  // As of the last poll; any thread. A stuck backend has requests and has completed none for
  // limits::kUnitStuck: it accepts few more.
  bool stuck() const { return (gate() & kStuck) != 0; }
  // It is stuck, and has completed no request since the last poll. Any thread. Exact, but reads the
  // counters of every reactor.
  bool still_stuck() const;
  // It is stuck, or has not completed one of its requests for limits::kRequestHung.
  bool medium_hangs() const { return stuck() || has_hung_request_.load(std::memory_order_relaxed); }
  Result<void> check_medium() const;   // ok without a backend; any thread except a reactor's
  MediumHealth medium_health() const;  // as of the last polls; any thread
  bool write_cache() const;            // any thread
  // The state that hosts see: on until the cache is off and flushed. Any thread.
  bool reported_write_cache() const;
  // Not null while the cache is being switched off (unit/write_cache.h).
  std::shared_ptr<CacheSettling>& cache_settling_locked() { return cache_settling_; }
  bool cache_settling() const;
  void set_default_write_cache(bool on) { default_write_cache_ = on; }
  // an I/O failed because the medium is missing: NOT READY until poll_health
  void medium_lost();
  void set_stopped(bool stopped);  // START STOP UNIT
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  // Restores the stored reservations; call it before the unit is exported. The error names path and
  // remedy.
  Result<void> restore_reservations();
  // The mutex is held, and reservations() changed: updates the gate.
  void reservations_changed();

  // The effects of LOGICAL UNIT RESET except for the aborts: releases RESERVE(6), restores saved
  // mode pages, raises 29/xx on every nexus. `now`: ReactorContext::now.
  void reset_state(UnitAttention ua, Nanos now);

  // --- mode parameters, protected by mutex(); readers get copies
  struct ModeParameters {
    bool descriptor_sense = false;        // D_SENSE
    bool software_write_protect = false;  // SWP
    bool operator==(const ModeParameters&) const = default;
  };
  ModeParameters mode() const;
  void set_mode(ModeParameters mode);
  bool descriptor_sense() const { return descriptor_sense_.load(std::memory_order_relaxed); }

 private:
  void enter_locked(BackendState next);
  bool opened_locked() const {
    return backend_state_ == BackendState::kOpen || backend_state_ == BackendState::kLeaving;
  }
  void update_ready_locked();
  void take_info_locked();
  void take_health_locked(MediumHealth found);
  scsi::Provisioning provisioning_of(const backend::Info& info) const;

  const UnitIdentity identity_;
  // These four change under the mutex while no command can pass the gate.
  std::shared_ptr<backend::Backend> backend_;
  std::shared_ptr<ReservationStore> store_;
  scsi::Support support_;
  scsi::BlockLimits limits_;
  std::atomic<bool> default_write_cache_;
  mutable std::mutex mutex_;
  Role role_;
  std::atomic<uint64_t> epoch_{0};
  BackendState backend_state_ = BackendState::kOpen;
  bool had_role_ = true;
  std::shared_ptr<Closing> closing_;
  std::shared_ptr<CacheSettling> cache_settling_;
  std::atomic<unsigned> held_{0};
  std::unique_ptr<Bandwidth> bandwidth_;
  std::atomic<uint64_t> gate_{0};
  std::atomic<uint64_t> blocks_{0};
  std::atomic<bool> descriptor_sense_{false};
  std::atomic<bool> stopped_{false};
  MediumHealth medium_;
  ProgressWatch progress_;  // of poll_progress(), as the next four
  ErrorWatch errors_;
  std::atomic<bool> has_errors_{false};
  std::atomic<bool> has_hung_request_{false};
  std::atomic<uint64_t> completed_at_poll_{0};
  ModeParameters mode_;
  const std::unique_ptr<AttachedNexuses> attached_;
  std::vector<std::weak_ptr<ExportingTarget>> targets_;
  std::shared_ptr<RangeTable> ranges_;  // shared with wake-up tasks for other reactors
  std::unique_ptr<Reservations> reservations_;
  std::function<void(uint64_t)> newer_epoch_;
  mutable ChangeWatch changes_;
  std::unique_ptr<UnitStatistics> statistics_;
};

// The storage pool of a thin unit has passed its administrator's threshold: raises 38/07 (THIN
// PROVISIONING SOFT THRESHOLD REACHED) on every nexus. Call it on every gateway that exports the
// unit, opened there or not, once each time the pool passes the threshold; any thread. Linux logs
// it and sends a uevent, ESXi warns about the datastore.
//
// Hosts can neither read nor set that threshold: VPD B2h reports THRESHOLD EXPONENT 0, and there is
// no mode page 1Ch/02h, which SBC-4 does not require. SAM-5 §5.14 permits any report to a host. The
// sense data has no INFORMATION, because that would refer to the missing page.
inline void tell_threshold_reached(Unit& unit) { unit.attached().raise({0x38, 0x07}, nullptr); }

}  // namespace sluice::lun
