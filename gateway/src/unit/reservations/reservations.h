// RESERVE(6)/RELEASE(6) (SPC-2 §5.5) and persistent reservations (SPC-5 §5.14) of one unit. This is
// state only: pr_decision.h computes the effect of a PERSISTENT RESERVE OUT; handlers in
// reservation_commands.cc parse, commit (reservation_contract.h) and answer.
//
// Threads: the caller holds the unit's mutex. Order: the ReservationStore makes a change durable
// before GOOD is sent (DESIGN R8).
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
// so the portal group is not compared.
bool same_ports(const NexusId& a, const NexusId& b);
bool same_initiator_port(const NexusId& a, const NexusId& b);

// Covers one I_T nexus. With ALL_TG_PT it covers every target port, including gateways that join
// later (DESIGN R8), except ports that were registered or unregistered individually since.
struct Registration {
  NexusId nexus;
  uint64_t key = 0;
  bool all_target_ports = false;       // ALL_TG_PT: relative_target_port of `nexus` is then ignored
  std::vector<uint16_t> except_ports;  // relative target port ids, with all_target_ports only

  bool covers(const NexusId& id) const;
  bool operator==(const Registration&) const = default;
};

// Accepts the nexuses, except `own`, that a registration of `whom` covers.
std::function<bool(const NexusId&)> covered_by(std::vector<Registration> whom, const NexusId& own);

// The state that a ReservationStore stores. At most one registration covers a nexus.
struct ReservationState {
  uint32_t generation = 0;  // PRgeneration
  bool aptpl = false;
  ReservationType type = ReservationType::kNone;
  std::optional<NexusId> holder;  // nullopt for no reservation and the all-registrants types
  std::vector<Registration> registrations;

  // the registration that covers `id`, or nullptr
  const Registration* find(const NexusId& id) const;
  bool holds(const NexusId& id) const;
  bool operator==(const ReservationState&) const = default;
};

// The state after a power loss of the unit (SPC-5 §5.14.5): with APTPL everything except
// PRgeneration, otherwise nothing.
ReservationState after_power_loss(ReservationState state);

class Reservations {
 public:
  // True while a reservation of either kind is held, so that the gate must check it.
  bool held() const { return reserve6_.has_value() || state_.type != ReservationType::kNone; }
  // False: RESERVATION CONFLICT for this command of this nexus. The four reservation commands pass
  // if their handlers apply a more detailed rule.
  bool allows(const NexusId& nexus, const scsi::CommandInfo& command) const;
  // The same for all other commands; valid until version() changes.
  ReservationRights rights(const NexusId& nexus) const;
  uint64_t version() const { return version_; }

  const ReservationState& state() const { return state_; }
  void replace(ReservationState state);

  // The outcome of the last commit is unknown (DESIGN R3): it was `decision`, made for `by`.
  // Nothing is decided based on state() until the store has reported the actual state.
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

  // Changes run one at a time, because each depends on the result of the previous one. False: one
  // is in progress.
  bool begin_change();
  // Queues `change`; the caller of end_change() calls it when it is the first. False: the queue is
  // full.
  bool enqueue_change(std::function<void()> change);
  // Returns the next queued change, which is now in progress; empty: none.
  std::function<void()> end_change();

 private:
  bool compatible_with_persistent(const NexusId& nexus) const;
  void set_reserve6(std::optional<NexusId> holder);

  uint64_t version_ = 0;
  std::optional<NexusId> reserve6_;
  ReservationState state_;
  bool changing_ = false;
  std::shared_ptr<const Doubt> doubt_;
  std::deque<std::function<void()>> changes_;
};

}  // namespace sluice::lun
