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
#include <string>
#include <vector>

#include "backend/backend.h"
#include "lun/change_watch.h"
#include "lun/command.h"
#include "lun/nexus.h"
#include "scsi/command_table.h"
#include "scsi/inquiry.h"
#include "scsi/sense.h"

namespace sluice::lun {

class RangeTable;
class Reservations;
class ReservationStore;
class UnitStatistics;

// Immutable for the life of the volume (DESIGN R13).
struct UnitIdentity {
  std::array<uint8_t, 16> uuid{};
  std::string serial;              // VPD 80; derived from the UUID
  std::string product = "VOLUME";  // at most 16 characters
  uint32_t oui = 0;                // 24 bits; 0: NAA 3 (locally assigned) else NAA 6
  uint32_t block_size = 512;       // logical, bytes: 512 or 4096
  uint32_t physical_block_size = 4096;
};

class Unit : public std::enable_shared_from_this<Unit> {
 public:
  // `store` may be null: APTPL is then refused in PERSISTENT RESERVE OUT (05/26/00).
  Unit(UnitIdentity identity, std::unique_ptr<backend::Backend> backend, unsigned reactors,
       std::shared_ptr<ReservationStore> store);
  ~Unit();

  const UnitIdentity& identity() const { return identity_; }
  backend::Backend& backend() const { return *backend_; }
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
  ReservationStore* reservation_store() const { return store_.get(); }  // may be null
  const scsi::Support& support() const { return support_; }
  bool default_write_cache() const { return default_write_cache_; }
  std::string uuid_text() const;         // 8-4-4-4-12, the key in a ReservationStore
  scsi::Identity scsi_identity() const;  // views into identity()
  // What INQUIRY says, and therefore what handlers enforce.
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
    kRemoved = 8,  // no longer exported
  };
  uint32_t gate() const { return static_cast<uint32_t>(gate_word() % kGateStep); }
  void raise_gate(Gate bit) { gate_.fetch_or(bit, std::memory_order_acq_rel); }
  void lower_gate(Gate bit) { gate_.fetch_and(~uint64_t{bit}, std::memory_order_acq_rel); }
  // The bits of Gate, and above them Reservations::version(): whatever was found out under one word
  // is true while the word stays.
  static constexpr uint64_t kGateStep = 256;
  uint64_t gate_word() const { return gate_.load(std::memory_order_acquire); }

  // --- unit attention (DESIGN R10: at least once, at most one pending per nexus and condition)
  // Queues `ua` for every I_T_L nexus but `except` (may be null). Takes the mutex.
  void raise_attention(UnitAttention ua, const Itl* except);
  // As the others here, with the mutex held by the caller.
  void raise_attention_locked(UnitAttention ua, const Itl* except);
  void raise_attention_for(const NexusId& id, UnitAttention ua);
  void raise_attention_for_locked(const NexusId& id, UnitAttention ua);
  // For every I_T_L nexus that `which` accepts: registrations may cover several (ALL_TG_PT).
  void raise_attention_where_locked(const std::function<bool(const NexusId&)>& which,
                                    UnitAttention ua);
  // Takes the oldest pending attention of `itl`; false: there is none.
  bool pop_attention(Itl& itl, UnitAttention* out);
  void clear_attention(Itl& itl, UnitAttention ua);  // if pending
  void attach(Itl* itl);                             // registers an I_T_L nexus
  void detach(Itl* itl);

  // --- changes from outside
  Result<void> resize(uint64_t bytes);  // grows; raises 2A/09 everywhere
  void poll_health();                   // control thread, about once a second
  void medium_lost();                   // an I/O found the medium gone: NOT READY until poll_health
  void set_stopped(bool stopped);       // START STOP UNIT
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
  // LOGICAL UNIT RESET's effects beside aborting: RESERVE(6) released, saved mode pages, 29/xx.
  void reset_state(const Itl* by, UnitAttention ua);

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

  const UnitIdentity identity_;
  const std::unique_ptr<backend::Backend> backend_;
  const std::shared_ptr<ReservationStore> store_;
  const bool default_write_cache_;
  mutable std::mutex mutex_;
  std::atomic<uint64_t> gate_{0};
  std::atomic<uint64_t> blocks_{0};
  std::atomic<bool> descriptor_sense_{false};
  std::atomic<bool> stopped_{false};
  bool medium_gone_ = false;
  ModeParameters mode_;
  scsi::Support support_;
  scsi::BlockLimits limits_;
  std::vector<Itl*> itls_;
  std::shared_ptr<RangeTable> ranges_;  // shared with wake-ups on their way to other reactors
  std::unique_ptr<Reservations> reservations_;
  mutable ChangeWatch changes_;
  std::unique_ptr<UnitStatistics> statistics_;
};

}  // namespace sluice::lun
