// RESERVE(6), RELEASE(6), PERSISTENT RESERVE IN and OUT: the order of decision, store, unit
// attention and answer. A change waits in a queue, is decided, and is committed by the store, off
// the reactor. Then:
//
// - Committed: apply, unit attentions, next change, aborts, answer.
// - Not committed: next change, BUSY.
// - No room for the state: next change, CHECK CONDITION.
// - Unknown: the nexus is dropped without an answer. The state that the store then reports is
//   applied with unit attentions and aborts; then the next change (reservation_queue.h).
//
// One change of a unit is in progress at a time; meanwhile I/O continues under the old state. The
// change ends before PREEMPT AND ABORT waits for the commands that it aborts, because they may wait
// for a backend and the next change need not.
//
// A commit proves that this gateway is the owner (DESIGN R8). For answers from memory, as for
// PERSISTENT RESERVE IN and for changes without effect, a kCheckFence of the backend proves it
// first (DESIGN R2; gateway/decisions/ceph.md).
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "commands/handlers.h"
#include "commands/reservations/pr_decision.h"
#include "commands/reservations/pr_transport_ids.h"
#include "commands/reservations/reservation_effects.h"
#include "commands/reservations/reservation_queue.h"
#include "scsi/cdb.h"
#include "scsi/pr_in.h"
#include "unit/abort_everywhere.h"
#include "unit/reservations/reservation_contract.h"

namespace sluice::lun {
namespace {

using scsi::Sense;
using scsi::SenseKey;
using scsi::Status;

const NexusId& nexus_of(const Command& command) { return command.nexus->id(); }
const ReactorContext& context_of(const Command& command) {
  return command.nexus->reactor_context();
}

// GOOD, if this is still the owner.
void check_fence_then_good(Unit& unit, Command& command) {
  run_io(unit, command, backend::Op::kCheckFence, 0, 0, 0,
         [](Unit&, Command& c) { finish_good(c); });
}

// --- RESERVE(6)

void reserve6_change(Unit& unit, Command& command) {
  bool granted = false;
  if (!command.aborted()) {
    const std::lock_guard lock(unit.mutex());
    granted = unit.reservations().reserve6(nexus_of(command));
    unit.reservations_changed();
  }
  begin_next_change(unit);
  if (granted) return check_fence_then_good(unit, command);
  finish_status(command, Status::kReservationConflict);
}

// --- PERSISTENT RESERVE OUT

// One PERSISTENT RESERVE OUT from its decision to its answer.
struct Change {
  std::shared_ptr<Unit> unit;
  Command* command = nullptr;
  PrDecision decision;
};
using ChangePtr = std::shared_ptr<Change>;

void answer(const Change& change) {
  Command& command = *change.command;
  if (change.decision.status == Status::kCheckCondition) {
    finish_sense(command, change.decision.sense);
  } else if (change.decision.status == Status::kGood && !change.decision.changed) {
    check_fence_then_good(*change.unit, command);
  } else {
    finish_status(command, change.decision.status);
  }
}

// The state is durable, or needed no commit.
void apply(const ChangePtr& change) {
  Unit& unit = *change->unit;
  PrDecision& decision = change->decision;
  if (decision.changed) {
    const std::lock_guard lock(unit.mutex());
    take_effect_locked(unit, decision, nexus_of(*change->command));
  }
  begin_next_change(unit);
  if (decision.aborts.empty()) return answer(*change);
  // DESIGN R9: answers only after the preempted nexuses' commands have released their blocks.
  const ReactorContext& context = context_of(*change->command);
  const NexusId& by = nexus_of(*change->command);
  abort_everywhere(unit, *context.reactors, context.reactor,
                   {.by = &by, .which = covered_by(decision.aborts, by), .except = change->command},
                   [change] {
                     // Third-party copies of those nexuses, which were sent to other units, may be
                     // writing here. A shared hold on all blocks waits for every writer that had
                     // the right.
                     hold_range(*change->unit, *change->command, 0, change->unit->blocks(), false,
                                [](Unit&, Command& command) { finish_good(command); });
                   });
}

// A host that got BUSY would repeat the command until an administrator frees space.
Sense no_room_sense(const Command& command) {
  switch (static_cast<scsi::PrOutAction>(command.full_cdb()[1] & 0x1f)) {
    case scsi::PrOutAction::kRegister:
    case scsi::PrOutAction::kRegisterAndIgnoreExistingKey:
    case scsi::PrOutAction::kRegisterAndMove:  // 55/04: INSUFFICIENT REGISTRATION RESOURCES
      return Sense::make(SenseKey::kIllegalRequest, 0x55, 0x04);
    default:  // 55/02: INSUFFICIENT RESERVATION RESOURCES
      return Sense::make(SenseKey::kIllegalRequest, 0x55, 0x02);
  }
}

void committed(const ChangePtr& change, CommitOutcome outcome, const std::string& error) {
  if (outcome == CommitOutcome::kCommitted) return apply(change);
  const std::shared_ptr<Unit> unit = change->unit;
  Command& command = *change->command;
  log::warning("reservations not committed",
               {{"unit", unit->uuid_text()},
                {"initiator", nexus_of(command).initiator_name},
                {"outcome", outcome == CommitOutcome::kUnknown  ? "unknown"
                            : outcome == CommitOutcome::kNoRoom ? "no room"
                                                                : "not committed"},
                {"error", error}});
  // DESIGN R3: BUSY means "not executed", which must be certain.
  if (outcome == CommitOutcome::kNotCommitted) {
    begin_next_change(*unit);
    return finish_status(command, Status::kBusy);
  }
  if (outcome == CommitOutcome::kNoRoom) {
    begin_next_change(*unit);
    return finish_sense(command, no_room_sense(command));
  }
  hold_in_doubt(unit, context_of(command), std::move(change->decision), nexus_of(command));
  command.outcome = Outcome::kUnknown;
  finish_good(command);
}

std::vector<NexusId> known_nexuses(Unit& unit, const Command& command) {
  std::vector<NexusId> known = command.nexus->nexuses_of_target();
  const std::lock_guard lock(unit.mutex());
  for (const Registration& r : unit.reservations().state().registrations) known.push_back(r.nexus);
  return known;
}

// The gate can't decide on REGISTER for a read-only host or backend: the parameter list says
// whether the command unregisters, which is allowed.
bool is_protected_from(const Command& command, const scsi::PrOutRequest& list) {
  const bool read_only = command.itl->read_only || command.itl->unit().backend().info().read_only;
  return read_only && list.action != scsi::PrOutAction::kRelease &&
         (list.service_action_key != 0 || !list.transport_ids.empty());
}

void decide_change(Unit& unit, Command& command) {
  auto change = std::make_shared<Change>();
  change->unit = command.itl->shared_unit();
  change->command = &command;
  PrDecision& decision = change->decision;
  ReservationStore* store = unit.reservation_store();
  auto list = scsi::parse_pr_out(command.full_cdb(), gather_data_out(command));
  if (command.aborted()) return apply(change);
  if (!list) {
    decision.status = Status::kCheckCondition;
    decision.sense = list.sense();
    return apply(change);
  }
  if (is_protected_from(command, *list)) {
    decision.status = Status::kCheckCondition;
    decision.sense = scsi::Sense::make(scsi::SenseKey::kDataProtect, 0x27, 0x00);
    return apply(change);
  }
  PrRequest request;
  request.list = *list;
  request.persist_capable = store != nullptr;
  if (!list->transport_ids.empty()) {
    resolve_transport_ids(nexus_of(command), known_nexuses(unit, command), request);
  }
  {
    const std::lock_guard lock(unit.mutex());
    Reservations& reservations = unit.reservations();
    if (!reservations.allows(nexus_of(command), *command.info)) {
      decision.status = Status::kReservationConflict;  // a RESERVE(6) was decided earlier
    } else {
      decision = decide(reservations.state(), nexus_of(command), request);
    }
  }
  if (!decision.changed || !store) return apply(change);
  store->commit(unit.uuid_text(), decision.state,
                {context_of(command).reactors, context_of(command).reactor},
                [change](CommitOutcome outcome, const std::string& error) {
                  committed(change, outcome, error);
                });
}

// --- PERSISTENT RESERVE IN

std::vector<scsi::PrRegistration> full_status(const ReservationState& state) {
  std::vector<scsi::PrRegistration> out;
  out.reserve(state.registrations.size());
  const bool all = scsi::is_all_registrants(state.type);
  for (const Registration& r : state.registrations) {
    scsi::PrRegistration p;
    p.key = r.key;
    p.initiator_name = r.nexus.initiator_name;
    p.isid = r.nexus.isid;
    p.all_target_ports = r.all_target_ports;
    p.relative_target_port = r.nexus.relative_target_port;
    p.holder = all || (state.holder && r.covers(*state.holder));
    p.type = state.type;
    out.push_back(p);
  }
  return out;
}

size_t build_reservation(const ReservationState& state, MutableBytes out) {
  const Registration* holder = state.holder ? state.find(*state.holder) : nullptr;
  return scsi::build_pr_read_reservation(state.generation, state.type, holder ? holder->key : 0,
                                         out);
}

std::vector<uint64_t> keys_of(const ReservationState& state) {
  std::vector<uint64_t> keys;
  keys.reserve(state.registrations.size());
  for (const Registration& r : state.registrations) keys.push_back(r.key);
  return keys;
}

bool in_doubt(Unit& unit) {
  const std::lock_guard lock(unit.mutex());
  return unit.reservations().doubtful();
}

void show(Unit& unit, Command& command) {
  const uint32_t room = scsi::allocation_length(*command.info, command.full_cdb());
  std::vector<uint8_t> data(room);
  size_t size = 0;
  {
    const std::lock_guard lock(unit.mutex());
    const ReservationState& state = unit.reservations().state();
    switch (static_cast<scsi::PrInAction>(command.info->service_action)) {
      case scsi::PrInAction::kReadKeys:
        size = scsi::build_pr_read_keys(state.generation, keys_of(state), data);
        break;
      case scsi::PrInAction::kReadReservation:
        size = build_reservation(state, data);
        break;
      case scsi::PrInAction::kReportCapabilities:
        size = scsi::build_pr_report_capabilities(
            {.persist_capable = unit.reservation_store() != nullptr,
             .persist_active = state.aptpl,
             .compatible_reserve = true},
            data);
        break;
      case scsi::PrInAction::kReadFullStatus:
        size = scsi::build_pr_read_full_status(state.generation, full_status(state), data);
        break;
    }
  }
  finish_data(command, ByteView(data).first(size), room);
}

void show_if_certain(Unit& unit, Command& command) {
  // A change may have become doubtful during the kCheckFence.
  if (in_doubt(unit)) return handle_persistent_reserve_in(unit, command);
  show(unit, command);
}

void check_fence_then_show(Unit& unit, Command& command) {
  run_io(unit, command, backend::Op::kCheckFence, 0, 0, 0, show_if_certain);
}

// --- RELEASE(6)

void release6_now(Unit& unit, Command& command) {
  bool good = false;
  {
    const std::lock_guard lock(unit.mutex());
    good = unit.reservations().release6(nexus_of(command));
    unit.reservations_changed();
  }
  if (good) return check_fence_then_good(unit, command);
  finish_status(command, Status::kReservationConflict);
}

// Calls `go` now, or, while the state is in doubt, after the doubt is resolved.
template <Handler go>
void once_certain(Unit& unit, Command& command) {
  if (!in_doubt(unit)) return go(unit, command);
  queue_change(unit, command, [](Unit& u, Command& c) {
    begin_next_change(u);
    go(u, c);
  });
}

}  // namespace

void handle_reserve6(Unit& unit, Command& command) { queue_change(unit, command, reserve6_change); }

void handle_release6(Unit& unit, Command& command) { once_certain<release6_now>(unit, command); }

void handle_persistent_reserve_in(Unit& unit, Command& command) {
  once_certain<check_fence_then_show>(unit, command);
}

void handle_persistent_reserve_out(Unit& unit, Command& command) {
  if (command.data_out_size < command.data_out_wanted) return finish_short_data(command);
  queue_change(unit, command, decide_change);
}

}  // namespace sluice::lun
