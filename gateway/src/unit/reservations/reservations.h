// RESERVE(6)/RELEASE(6) (SPC-2 §5.5) and persistent reservations (SPC-5 §5.14) of one unit.
// State only: pr_decision.h decides what a PERSISTENT RESERVE OUT does to it, handlers in
// reservation_commands.cc parse, commit (reservation_contract.h) and answer.
//
// Threads: every member is called with the unit's mutex held.
// Order: a change is made durable through the ReservationStore before GOOD is sent (DESIGN R8).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scsi/command_table.h"
#include "scsi/pr_out_list.h"
#include "unit/nexus_id.h"
#include "unit/reservations/reservation_rights.h"

namespace sluice::lun {

using ReservationType = scsi::PrType;

// Whether two ids name the same pair of ports. The relative target port is unique in the cluster,
// so the portal group adds nothing.
bool same_ports(const NexusId& a, const NexusId& b);
bool same_initiator_port(const NexusId& a, const NexusId& b);

// Covers one I_T nexus, or with ALL_TG_PT every target port, also of gateways that join later
// (DESIGN R8), but those that have since been registered or unregistered one by one.
struct Registration {
  NexusId nexus;
  uint64_t key = 0;
  bool all_target_ports = false;       // ALL_TG_PT: relative_target_port of `nexus` is then ignored
  std::vector<uint16_t> except_ports;  // relative target port ids, with all_target_ports only

  bool covers(const NexusId& id) const;
  bool operator==(const Registration&) const = default;
};

// The nexuses but `own` that a registration of `whom` covers.
std::function<bool(const NexusId&)> covered_by(std::vector<Registration> whom, const NexusId& own);

// All that must survive: what a ReservationStore keeps. At most one registration covers a nexus.
struct ReservationState {
  uint32_t generation = 0;  // PRgeneration
  bool aptpl = false;
  ReservationType type = ReservationType::kNone;
  std::optional<NexusId> holder;  // nullopt for no reservation and the all-registrants types
  std::vector<Registration> registrations;

  const Registration* find(const NexusId& id) const;  // the one that covers `id`, or nullptr
  bool holds(const NexusId& id) const;
  bool operator==(const ReservationState&) const = default;
};

// What is left of a state once the unit lost power (SPC-5 §5.14.5): everything but PRgeneration
// with APTPL, else nothing.
ReservationState after_power_loss(ReservationState state);

class Reservations {
 public:
  // True while the gate must look closer (a reservation of either kind is held).
  bool held() const { return reserve6_.has_value() || state_.type != ReservationType::kNone; }
  // RESERVATION CONFLICT or not for this command of this nexus. The four reservation commands
  // themselves pass where their handlers know the finer rule.
  bool allows(const NexusId& nexus, const scsi::CommandInfo& command) const;
  // The same for all other commands, good until version() changes.
  ReservationRights rights(const NexusId& nexus) const;
  uint64_t version() const { return version_; }

  const ReservationState& state() const { return state_; }
  void replace(ReservationState state);

  // The last commit's outcome is unknown (DESIGN R3): it may be `decision`, taken for `by`. Nothing
  // is decided on state() before the store was asked what became of it.
  struct Doubt;
  bool doubtful() const { return doubt_ != nullptr; }
  const std::shared_ptr<const Doubt>& doubt() const { return doubt_; }
  void set_doubt(std::shared_ptr<const Doubt> doubt) { doubt_ = std::move(doubt); }

  // RESERVE(6) and RELEASE(6) with compatible reservation handling (CRH, SPC-5 §5.14.3). False:
  // RESERVATION CONFLICT.
  bool reserve6(const NexusId& nexus);
  bool release6(const NexusId& nexus);
  void release6_any() { set_reserve6(std::nullopt); }

  bool registered(const NexusId& nexus) const { return state_.find(nexus) != nullptr; }
  bool holds(const NexusId& nexus) const { return state_.holds(nexus); }

  // Changes go one at a time, because the next is decided on what the last one committed. False:
  // one is in flight.
  bool begin_change();
  // `turn` is called (by end_change's caller) when it has become the one in flight. False: too
  // many wait.
  bool wait_for_turn(std::function<void()> turn);
  // The next in line, now in flight; empty: none.
  std::function<void()> end_change();

 private:
  bool compatible_with_persistent(const NexusId& nexus) const;
  void set_reserve6(std::optional<NexusId> holder);

  uint64_t version_ = 0;
  std::optional<NexusId> reserve6_;
  ReservationState state_;
  bool changing_ = false;
  std::shared_ptr<const Doubt> doubt_;
  std::deque<std::function<void()>> turns_;
};

}  // namespace sluice::lun
