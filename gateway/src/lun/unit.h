// A logical unit: identity, backend and the state SCSI keeps about it. Handlers (one file per
// family of commands) are free functions over Unit and Command, found by scsi::Operation.
//
// Threads: commands run on their nexus's reactor, so one unit is used by several at once. The fast
// path (READ, WRITE without attentions, by whom no reservation keeps out) touches only: gate_ (one
// atomic load), Itl::attention (one atomic load), the reactor's own lane of the range table, the
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
#include "lun/change_watch.h"
#include "lun/command.h"
#include "lun/nexus.h"
#include "lun/role.h"
#include "scsi/command_table.h"
#include "scsi/inquiry.h"
#include "scsi/sense.h"

namespace sluice::lun {

class AttentionLog;
class Bandwidth;
class RangeTable;
class Reservations;
class ReservationStore;
class UnitStatistics;
struct CacheSettling;
struct Closing;
struct Qos;
struct Registration;
struct ReservationState;

inline constexpr UnitAttention kCapacityChanged{0x2a, 0x09};  // CAPACITY DATA HAS CHANGED

// Immutable for the life of the volume (DESIGN R13).
struct UnitIdentity {
  std::array<uint8_t, 16> uuid{};
  std::string serial;              // VPD 80; derived from the UUID
  std::string product = "VOLUME";  // at most 16 characters
  uint32_t oui = 0;                // 24 bits; 0: NAA 3 (locally assigned) else NAA 6
  uint32_t block_size = 512;       // logical, bytes: 512 or 4096
  uint32_t physical_block_size = 4096;
};

// What a gateway that hasn't opened a volume tells of it.
struct Shape {
  uint64_t size_bytes = 0;
  bool write_cache = false;
};

class Unit : public std::enable_shared_from_this<Unit> {
 public:
  // `store` may be null: APTPL is then refused in PERSISTENT RESERVE OUT (05/26/00).
  Unit(UnitIdentity identity, std::unique_ptr<backend::Backend> backend, unsigned reactors,
       std::shared_ptr<ReservationStore> store);
  // One without a backend, Transitioning (lun/ownership.h).
  Unit(UnitIdentity identity, Shape shape, unsigned reactors);
  ~Unit();

  const UnitIdentity& identity() const { return identity_; }
  // For commands that passed the gate, and for units that keep their backend for life. Where there
  // is none: a stand-in that knows size and cache mode and refuses every request with ENODEV.
  backend::Backend& backend() const { return *backend_; }
  // The same for everybody else; it may be closed any time.
  std::shared_ptr<backend::Backend> shared_backend() const;
  // Capacity in logical blocks.
  uint64_t blocks() const { return blocks_.load(std::memory_order_relaxed); }
  uint32_t block_size() const { return identity_.block_size; }
  bool read_only() const;  // backend's, or SWP of the control mode page
  std::mutex& mutex() const { return mutex_; }
  RangeTable& ranges() const { return *ranges_; }
  Reservations& reservations() const { return *reservations_; }
  UnitStatistics& statistics() const { return *statistics_; }
  // To be told of every exclusive hold before its blocks change.
  ChangeWatch& changes() const { return changes_; }
  // May be null. For commands that passed the gate.
  ReservationStore* reservation_store() const { return store_.get(); }
  std::shared_ptr<ReservationStore> shared_store() const;  // for everybody else
  // For commands that passed the gate.
  const scsi::Support& support() const { return support_; }
  bool default_write_cache() const { return default_write_cache_; }
  std::string uuid_text() const;         // 8-4-4-4-12, the key in a ReservationStore
  scsi::Identity scsi_identity() const;  // views into identity()
  // What INQUIRY says, and therefore what handlers enforce. limits() and provisioning() are for
  // commands that passed the gate, inquiry() for all: without a backend it tells what is known.
  const scsi::BlockLimits& limits() const { return limits_; }
  scsi::InquiryUnit inquiry(const Nexus& nexus) const;
  scsi::Geometry geometry() const;
  scsi::Provisioning provisioning() const;

  // --- gate: a word that its nexus hasn't found open sends a command the slow way round
  // (lun/gate.cc)
  enum Gate : uint32_t {
    kReserved = 1,  // RESERVE(6) or a persistent reservation is held
    kNotReady = 2,  // medium gone, or stopped by START STOP UNIT
    kWriteProtected = 4,
    kRemoved = 8,     // no longer exported
    kElsewhere = 16,  // its standing is not kOwner
    kDraining = 32,   // ... any more: commands that were started complete here
    kLimited = 64,    // set_qos()
  };
  // With these a command takes the detour through lun/placing.h.
  static constexpr uint32_t kDetour = kElsewhere | kLimited;
  uint32_t gate() const { return static_cast<uint32_t>(gate_word() % kGateStep); }
  void raise_gate(Gate bit) { gate_.fetch_or(bit, std::memory_order_acq_rel); }
  void lower_gate(Gate bit) { gate_.fetch_and(~uint64_t{bit}, std::memory_order_acq_rel); }
  // The bits of Gate, and above them Reservations::version(): whatever was found out under one word
  // is true while the word stays.
  static constexpr uint64_t kGateStep = 256;
  uint64_t gate_word() const { return gate_.load(std::memory_order_acquire); }

  // --- ownership (DESIGN R1); lun/ownership.h changes it, in unit_ownership.cc
  Role role() const;
  // Of role(); on the far side of the gate it is the owner's, that is ours.
  uint64_t epoch() const { return epoch_.load(std::memory_order_relaxed); }
  // Who is told of a newer epoch than ours, on any reactor: whoever sees one is fenced (R1). Set
  // before the unit is exported.
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
  std::vector<std::shared_ptr<Itl>> living_itls_locked() const;
  // A lane whose Aio can carry a flush, once any I_T_L nexus was there; `reactors` null: none was.
  Lane any_lane_locked() const { return lane_; }

  // --- quality of service at the owner; lun/bandwidth.h
  void set_qos(const Qos& qos);
  Bandwidth& bandwidth() const { return *bandwidth_; }

  // --- unit attention (DESIGN R10: at least once, at most one pending per nexus and condition)
  // Queues `ua` for every I_T_L nexus but `except` (may be null), those included that are not
  // there yet (lun/attention_log.h). Takes the mutex.
  void raise_attention(UnitAttention ua, const Itl* except);
  // The same for what the owner alone knows of, at the time `now` (Lane::now): it tells the hosts
  // of the gateways that forward, too, from when they logged in there on.
  void raise_owners_attention(UnitAttention ua, const Itl* except, Nanos now);
  // As the others here, with the mutex held by the caller.
  void raise_attention_locked(UnitAttention ua, const Itl* except);
  void raise_attention_for(Itl& itl, UnitAttention ua);
  // For every nexus but `by` that one of them covers. `by` is there.
  void raise_attention_for_locked(const std::vector<Registration>& whom, const NexusId& by,
                                  UnitAttention ua);
  // Takes the oldest pending attention of `itl`; false: there is none.
  bool pop_attention(Itl& itl, UnitAttention* out);
  void clear_attention(Itl& itl, UnitAttention ua);  // if pending
  // Registers an I_T_L nexus; what is pending for it: Itl::open().
  void attach(Itl& itl, const std::vector<UnitAttention>& first, uint64_t since);
  void detach(Itl* itl);
  // A target that shows this unit, or has done so.
  void add_target(const std::shared_ptr<Target>& target);
  std::vector<std::shared_ptr<Target>> targets_locked() const;

  // --- changes from outside
  Result<void> resize(uint64_t bytes);  // grows; raises 2A/09 everywhere
  void poll_health();                   // control thread, about once a second
  Result<void> check_medium() const;    // ok where there is no backend; any thread but a reactor
  bool write_cache() const;             // any thread
  // What hosts are told of it: on until it is off for good. Any thread.
  bool told_write_cache() const;
  // Not null while it is said to be off and isn't yet; lun/write_cache.h.
  std::shared_ptr<CacheSettling>& cache_settling_locked() { return cache_settling_; }
  bool cache_settling() const;
  void set_default_write_cache(bool on) { default_write_cache_ = on; }
  void medium_lost();              // an I/O found the medium gone: NOT READY until poll_health
  void set_stopped(bool stopped);  // START STOP UNIT
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  // Takes up what the store kept; before the unit is exported. The error names path and mend.
  Result<void> restore_reservations();
  // The mutex is held and reservations() changed: makes it known to the gate.
  void reservations_changed();

  // Aborts the commands of every nexus that `which` accepts (empty: of all), on all reactors, and
  // runs `done` on reactor `reply_to`, never inside the call, when they are all complete. Commands
  // of other nexuses than `by` end with TASK ABORTED status (TAS=1); those of `by` itself end
  // without a status and are included only if `include_own`. `except` is spared and not waited
  // for: the command that asks (PREEMPT AND ABORT of its own registration).
  void abort_everywhere(Reactors& reactors, unsigned reply_to, const Nexus* by, bool include_own,
                        std::function<bool(const NexusId&)> which, std::function<void()> done,
                        const Command* except = nullptr);
  // LOGICAL UNIT RESET's effects beside aborting: RESERVE(6) released, saved mode pages, 29/xx for
  // everybody. `now`: Lane::now.
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
  void take_health_locked(bool gone);
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
  Lane lane_;
  std::atomic<unsigned> held_{0};
  std::unique_ptr<Bandwidth> bandwidth_;
  std::atomic<uint64_t> gate_{0};
  std::atomic<uint64_t> blocks_{0};
  std::atomic<bool> descriptor_sense_{false};
  std::atomic<bool> stopped_{false};
  bool medium_gone_ = false;
  ModeParameters mode_;
  std::vector<Itl*> itls_;
  std::vector<std::weak_ptr<Target>> targets_;
  std::unique_ptr<AttentionLog> attentions_;
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
// obliges to nothing, and SAM-5 §5.14 leaves it to us what a host should be told. So the sense data
// has no INFORMATION, which would point into that page.
void tell_threshold_reached(Unit& unit);

}  // namespace sluice::lun
