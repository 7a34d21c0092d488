// A logical unit: identity, backend and the state SCSI keeps about it. Handlers (one file per
// family of commands) are free functions over Unit and Command, found by scsi::Operation.
//
// Threads: commands run on their nexus's reactor, so one unit is used by several at once. The fast
// path (READ, WRITE without attentions, kept out by no reservation) touches only: gate_ (one atomic
// load), AttachedNexus::attention (one atomic load), the reactor's own lane of the range table, the
// backend. Everything else is guarded by mutex().
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
#include "unit/medium_health.h"
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

class Unit : public std::enable_shared_from_this<Unit> {
 public:
  // `store` may be null: APTPL is then refused in PERSISTENT RESERVE OUT (05/26/00).
  Unit(UnitIdentity identity, std::unique_ptr<backend::Backend> backend, unsigned reactors,
       std::shared_ptr<ReservationStore> store);
  // One without a backend, Transitioning (unit/ownership.h).
  Unit(UnitIdentity identity, Shape shape, unsigned reactors);
  ~Unit();

  const UnitIdentity& identity() const { return identity_; }
  // For commands that passed the gate, and for units that keep their backend for life. Where there
  // is none: a stand-in that knows size and cache mode and refuses every request with ENODEV.
  backend::Backend& backend() const { return *backend_; }
  // The same for other callers; it may be closed any time.
  std::shared_ptr<backend::Backend> shared_backend() const;
  // Capacity in logical blocks.
  uint64_t blocks() const { return blocks_.load(std::memory_order_relaxed); }
  uint32_t block_size() const { return identity_.block_size; }
  bool read_only() const;  // backend's, or SWP of the control mode page
  std::mutex& mutex() const { return mutex_; }
  RangeTable& ranges() const { return *ranges_; }
  Reservations& reservations() const { return *reservations_; }
  UnitStatistics& statistics() const { return *statistics_; }
  // The holder of an exclusive range calls it before blocks change.
  ChangeWatch& changes() const { return changes_; }
  // May be null. For commands that passed the gate.
  ReservationStore* reservation_store() const { return store_.get(); }
  std::shared_ptr<ReservationStore> shared_store() const;  // for other callers
  // For commands that passed the gate.
  const scsi::Support& support() const { return support_; }
  bool default_write_cache() const { return default_write_cache_; }
  std::string uuid_text() const;         // 8-4-4-4-12, the key in a ReservationStore
  scsi::Identity scsi_identity() const;  // views into identity()
  // What INQUIRY says, and therefore what handlers enforce. limits() and provisioning() are for
  // commands that passed the gate, inquiry() for all: without a backend it tells what is known.
  const scsi::BlockLimits& limits() const { return limits_; }
  scsi::InquiryUnit inquiry(const scsi::PortIdentity& port) const;
  scsi::Geometry geometry() const;
  scsi::Provisioning provisioning() const;

  // --- gate: a word that its nexus hasn't found open sends a command the slow way round
  // (commands/gate.cc)
  enum Gate : uint32_t {
    kReserved = 1,  // RESERVE(6) or a persistent reservation is held
    kNotReady = 2,  // medium gone, or stopped by START STOP UNIT
    kWriteProtected = 4,
    kRemoved = 8,     // no longer exported
    kElsewhere = 16,  // its standing is not kOwner
    kDraining = 32,   // ... any more: commands that were started complete here
    kLimited = 64,    // set_qos()
  };
  // With these a command takes the detour through nexus/command_routing.h.
  static constexpr uint32_t kDetour = kElsewhere | kLimited;
  uint32_t gate() const { return static_cast<uint32_t>(gate_word() % kGateStep); }
  void raise_gate(Gate bit) { gate_.fetch_or(bit, std::memory_order_acq_rel); }
  void lower_gate(Gate bit) { gate_.fetch_and(~uint64_t{bit}, std::memory_order_acq_rel); }
  // The bits of Gate, and above them Reservations::version(): whatever was found out under one word
  // is true while the word stays.
  static constexpr uint64_t kGateStep = 256;
  uint64_t gate_word() const { return gate_.load(std::memory_order_acquire); }

  // --- ownership (DESIGN R1); unit/ownership.h and unit/closing.h change it
  Role role() const;
  // Of role(); on the far side of the gate it is the owner's, that is ours.
  uint64_t epoch() const { return epoch_.load(std::memory_order_relaxed); }
  // Called with an epoch that is newer than ours, on any reactor: a gateway that sees one is fenced
  // (R1). Set before the unit is exported.
  void watch_epochs(std::function<void(uint64_t epoch)> told) { newer_epoch_ = std::move(told); }
  void tell_epoch(uint64_t epoch) const {
    if (epoch > this->epoch() && newer_epoch_) newer_epoch_(epoch);
  }
  bool opened() const;  // it has a backend
  // Commands in this gateway's hands that wait; limits::kMaxHeldPerUnit. false: no more.
  bool hold();
  void unhold() { held_.fetch_sub(1, std::memory_order_relaxed); }
  // Called with the mutex held, like all that end in _locked.
  void open_locked(std::shared_ptr<backend::Backend> backend,
                   std::shared_ptr<ReservationStore> store, ReservationState reservations);
  std::shared_ptr<backend::Backend> close_locked();  // returns what it had
  std::shared_ptr<backend::Backend> shared_backend_locked() const { return backend_; }
  void reshape_locked(Shape shape);
  void set_role_locked(const Role& role);  // and the gate with it; raises 2A/06 where R10 wants it
  bool opened_locked() const { return opened_; }
  bool vacant_locked() const { return !opened_ && !closing_; }  // nothing of a backend is left
  // Transitioning; `draining`: commands that were started complete here.
  void stop_serving_locked(bool draining);
  std::shared_ptr<Closing>& closing_locked() { return closing_; }

  // --- quality of service at the owner; unit/bandwidth.h
  void set_qos(const Qos& qos);
  Bandwidth& bandwidth() const { return *bandwidth_; }

  // --- users
  // The I_T_L nexuses, and the unit attentions raised on them.
  AttachedNexuses& attached() const { return *attached_; }
  // A target that shows this unit, or has done so.
  void add_target(const std::shared_ptr<ExportingTarget>& target);
  std::vector<std::shared_ptr<ExportingTarget>> targets_locked() const;

  // --- changes from outside
  Result<void> resize(uint64_t bytes);  // grows; raises 2A/09 everywhere
  void poll_health();                   // control thread, about once a second
  Result<void> check_medium() const;    // ok where there is no backend; any thread but a reactor
  MediumHealth medium_health() const;   // as of the last poll; any thread
  bool write_cache() const;             // any thread
  // What hosts find it to be: on until it is off for good. Any thread.
  bool told_write_cache() const;
  // Not null while it is said to be off and isn't yet; unit/write_cache.h.
  std::shared_ptr<CacheSettling>& cache_settling_locked() { return cache_settling_; }
  bool cache_settling() const;
  void set_default_write_cache(bool on) { default_write_cache_ = on; }
  void medium_lost();              // an I/O found the medium gone: NOT READY until poll_health
  void set_stopped(bool stopped);  // START STOP UNIT
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  // Restores what the store kept; before the unit is exported. The error names path and remedy.
  Result<void> restore_reservations();
  // The mutex is held and reservations() changed: makes it known to the gate.
  void reservations_changed();

  // LOGICAL UNIT RESET's effects beside aborting: RESERVE(6) released, saved mode pages, 29/xx on
  // every nexus. `now`: ReactorContext::now.
  void reset_state(UnitAttention ua, Nanos now);

  // --- mode parameters, guarded by mutex(); copies for reading
  struct ModeParameters {
    bool descriptor_sense = false;        // D_SENSE
    bool software_write_protect = false;  // SWP
    bool operator==(const ModeParameters&) const = default;
  };
  ModeParameters mode() const;
  void set_mode(ModeParameters mode);
  bool descriptor_sense() const { return descriptor_sense_.load(std::memory_order_relaxed); }

 private:
  void update_ready_locked();
  void take_info_locked();
  void take_health_locked(MediumHealth found);
  scsi::Provisioning provisioning_of(const backend::Info& info) const;

  const UnitIdentity identity_;
  // These four change under the mutex while nothing passes the gate.
  std::shared_ptr<backend::Backend> backend_;
  std::shared_ptr<ReservationStore> store_;
  scsi::Support support_;
  scsi::BlockLimits limits_;
  std::atomic<bool> default_write_cache_;
  mutable std::mutex mutex_;
  Role role_;
  std::atomic<uint64_t> epoch_{0};
  bool opened_ = true;
  bool placed_ = true;  // it has had a role
  std::shared_ptr<Closing> closing_;
  std::shared_ptr<CacheSettling> cache_settling_;
  std::atomic<unsigned> held_{0};
  std::unique_ptr<Bandwidth> bandwidth_;
  std::atomic<uint64_t> gate_{0};
  std::atomic<uint64_t> blocks_{0};
  std::atomic<bool> descriptor_sense_{false};
  std::atomic<bool> stopped_{false};
  MediumHealth medium_;
  ModeParameters mode_;
  const std::unique_ptr<AttachedNexuses> attached_;
  std::vector<std::weak_ptr<ExportingTarget>> targets_;
  std::shared_ptr<RangeTable> ranges_;  // shared with wake-ups on their way to other reactors
  std::unique_ptr<Reservations> reservations_;
  std::function<void(uint64_t)> newer_epoch_;
  mutable ChangeWatch changes_;
  std::unique_ptr<UnitStatistics> statistics_;
};

// The storage pool of a thin unit has passed the threshold that its administrator set: raises 38/07
// (THIN PROVISIONING SOFT THRESHOLD REACHED) on every nexus. To be called on every gateway that
// exports the unit, opened there or not, once each time the pool passes it; any thread. Linux logs
// it and sends a uevent, ESXi warns of the datastore. Hosts can neither read nor set that
// threshold: VPD B2h says THRESHOLD EXPONENT 0 and there is no mode page 1Ch/02h, by which SBC-4
// obliges to nothing, and SAM-5 §5.14 leaves it to us what to report to a host. So the sense data
// has no INFORMATION, which would point into that page.
void tell_threshold_reached(Unit& unit);

}  // namespace sluice::lun
