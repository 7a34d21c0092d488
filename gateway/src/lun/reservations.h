// RESERVE(6)/RELEASE(6) (SPC-2 §5.5) and persistent reservations (SPC-5 §5.14) of one unit.
// State only: handlers in reservation_commands.cc parse, decide and answer.
//
// Threads: every member is called with the unit's mutex held.
// Order: a change is made durable through the ReservationStore before GOOD is sent (DESIGN R8).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lun/nexus.h"
#include "scsi/command_table.h"

namespace sluice::lun {

enum class ReservationType : uint8_t {  // SPC-5 §5.14.? table, TYPE codes
  kNone = 0,
  kWriteExclusive = 1,
  kExclusiveAccess = 3,
  kWriteExclusiveRegistrantsOnly = 5,
  kExclusiveAccessRegistrantsOnly = 6,
  kWriteExclusiveAllRegistrants = 7,
  kExclusiveAccessAllRegistrants = 8,
};

struct Registration {
  NexusId nexus;
  uint64_t key = 0;
  bool all_target_ports = false;  // ALL_TG_PT: relative_target_port of `nexus` is then ignored
};

// All that must survive: what a ReservationStore keeps.
struct ReservationState {
  uint32_t generation = 0;        // PRgeneration
  bool aptpl = false;
  ReservationType type = ReservationType::kNone;
  std::optional<size_t> holder;   // index into registrations; nullopt for *-AR types or none
  std::vector<Registration> registrations;
};

// Where reservation state is made durable. Called from reactors; `done` is posted back by the
// caller's own means and may run on any thread.
class ReservationStore {
 public:
  virtual ~ReservationStore() = default;
  // Durable (fsynced, whole or not at all) before done(ok).
  virtual void commit(const std::string& unit_uuid, const ReservationState& state,
                      std::function<void(Result<void>)> done) = 0;
  // State kept with APTPL; an empty state when there is none.
  virtual Result<ReservationState> load(const std::string& unit_uuid) = 0;
};

class Reservations {
 public:
  // True while the gate must look closer (a reservation of either kind is held).
  bool held() const { return reserve6_.has_value() || state_.type != ReservationType::kNone; }
  // RESERVATION CONFLICT or not for this command of this nexus.
  bool allows(const NexusId& nexus, const scsi::CommandInfo& command) const;

  const ReservationState& state() const { return state_; }
  void replace(ReservationState state) { state_ = std::move(state); }

  // RESERVE(6): false when another nexus holds it.
  bool reserve6(const NexusId& nexus);
  void release6(const NexusId& nexus);
  void release6_any() { reserve6_.reset(); }

  bool registered(const NexusId& nexus) const;
  bool holds(const NexusId& nexus) const;

 private:
  std::optional<NexusId> reserve6_;
  ReservationState state_;
};

}  // namespace sluice::lun
