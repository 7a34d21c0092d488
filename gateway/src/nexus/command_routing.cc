#include "nexus/command_routing.h"

#include <algorithm>
#include <optional>

#include "base/limits.h"
#include "commands/gate.h"
#include "commands/handlers.h"
#include "commands/media_range.h"
#include "nexus/execution.h"
#include "nexus/forwarding.h"
#include "unit/bandwidth.h"
#include "unit/unit_sense.h"

namespace sluice::lun {
namespace {

using scsi::Operation;
using scsi::Sense;
using Stage = Command::Stage;

// Whether every gateway gives the same answer, independent of ownership.
bool is_common_inquiry(ByteView cdb) {
  if ((cdb[1] & 0x01) == 0) return true;
  switch (cdb[2]) {
    case 0x00:
    case 0x80:
    case 0x83:
    case 0x86:
      return true;
    default:
      return false;
  }
}

// Whether a gateway that does not own the unit answers immediately itself.
bool answers_itself(const Command& command, Standing standing) {
  if (!command.info) return false;
  switch (command.info->operation) {
    case Operation::kReportLuns:
    case Operation::kReportTargetPortGroups:
    case Operation::kSetTargetPortGroups:
      return true;
    case Operation::kInquiry:
      return standing != Standing::kForwarder || is_common_inquiry(command.full_cdb());
    case Operation::kRequestSense:  // a unit attention of this gateway is reported by this gateway
      return standing != Standing::kForwarder ||
             command.itl->attention.load(std::memory_order_acquire);
    case Operation::kTestUnitReady:
      return standing != Standing::kForwarder;
    default:
      return false;
  }
}

bool want_data(Command& command) {
  if (command.data_out_wanted == 0 || command.expected_data_out == 0) return false;
  command.stage = Stage::kAwaitingData;
  return true;
}

void refuse(Command& command, const Sense& sense) {
  if (sense.key == scsi::SenseKey::kNoSense) return finish_good(command);
  finish_sense(command, sense);
}

// Checks the CDB as begin() does, for a command whose data may have arrived. False: answered.
bool prepare(Unit& unit, Command& command) {
  Sense sense;
  command.info = scsi::find_command(command.full_cdb(), unit.support(), &sense);
  if (!command.info || !attribute_known(command, &sense)) {
    finish_sense(command, sense);
    return false;
  }
  if (!is_still_admitted(unit, command, unit.gate_word())) return false;
  command.data_out_wanted = 0;
  command.wants_hold = false;
  if (!operation(command.info->operation).prepare(unit, command, &sense)) {
    refuse(command, sense);
    return false;
  }
  // The data that was gathered for another owner may exceed the CDB's length.
  command.data_out_size = std::min(command.data_out_size, command.data_out_wanted);
  command.prepared = true;
  return true;
}

// Answers of a unit that is not ours; no reservation restricts them.
void answer_itself(Unit& unit, Command& command, Standing standing) {
  if (command.info->operation == Operation::kTestUnitReady) {
    return finish_sense(command, inaccessible(standing));
  }
  Sense sense;
  if (!scsi::find_command(command.full_cdb(), &sense) || !attribute_known(command, &sense)) {
    return refuse_cdb(unit, command, sense);
  }
  command.wants_hold = false;
  dispatch(unit, command);
}

void forward(Command& command, const Role& role) {
  if (command.itl->ordering != 0 && !itl_of(command).may_run(command)) {
    command.stage = Stage::kBlocked;
    return;
  }
  if (!passes_protection(command) || !is_fresh(command)) return;
  const Itl& itl = itl_of(command);
  command.link = itl.links().link_to(role.owner, itl.shared_nexus());
  if (!command.link) return finish_sense(command, inaccessible(Standing::kTransitioning));
  command.stage = Stage::kForwarded;
  command.data_out_wanted = command.data_out_size;
  const std::shared_ptr<Link> link = command.link;  // the command may end within the call
  link->start(command, role.epoch);
}

// The bytes that a command is charged on a limited unit, in addition to the command itself;
// nullopt: neither is charged. Copies are charged piece by piece at both units
// (commands/copies/copier.h).
std::optional<uint64_t> cost(const Unit& unit, Command& command) {
  switch (command.info->operation) {
    case Operation::kUnmap:
    case Operation::kExtendedCopy:
    case Operation::kWriteUsingToken:
      return 0;
    case Operation::kWriteSame:  // as for UNMAP, or it is written
      if (command.range.unmap && writes_zeros(command)) return 0;
      break;
    default:
      if (!command.wants_hold) return std::nullopt;
  }
  return command.range.blocks * unit.block_size();
}

// DESIGN R6: the command may have become stale while it waited for bandwidth.
bool went_stale(const Command& command) {
  const ReactorContext& context = command.nexus->reactor_context();
  return command.fresh_until != 0 && context.clock && context.clock() > command.fresh_until;
}

// Ends a forwarded command that gets no bandwidth in time. If it ended as stale, it would be
// forwarded again without end. Instead its host gets TASK SET FULL (SAM-5 §5.3.1) and sends less.
// That is true because nothing was executed. It is not charged.
bool finish_late(Command& command) {
  if (command.epoch == 0 || !went_stale(command)) return false;
  finish_status(command, scsi::Status::kTaskSetFull);
  return true;
}

// False: it waits for bandwidth.
bool run_here(Unit& unit, Command& command) {
  if (command.epoch != 0 && command.epoch != unit.epoch()) {
    finish_not_owner(command);
    return true;
  }
  if (command.held_since >= 0 && finish_late(command)) return true;
  if (command.prepared) {
    if (!is_still_admitted(unit, command, unit.gate_word())) return true;
  } else if (!prepare(unit, command)) {
    return true;
  }
  if (unit.gate() & Unit::kLimited) {
    const std::optional<uint64_t> bytes = cost(unit, command);
    if (bytes && finish_late(command)) return true;
    if (bytes && !unit.bandwidth().take(*command.nexus->reactor_context().now, *bytes))
      return false;
  }
  dispatch(unit, command);
  return true;
}

// False: it must wait.
bool go(Unit& unit, Command& command) {
  if (!passes_removed(unit, command)) return true;
  const Role role = unit.role();
  const bool behind_reset = itl_of(command).resets != 0;
  if (role.standing == Standing::kOwner) return !behind_reset && run_here(unit, command);
  command.prepared = false;
  if (command.epoch != 0) {
    finish_not_owner(command);
    return true;
  }
  if (answers_itself(command, role.standing)) {
    answer_itself(unit, command, role.standing);
    return true;
  }
  switch (role.standing) {
    case Standing::kForwarder:
      if (behind_reset) return false;
      forward(command, role);
      return true;
    case Standing::kUnavailable:
      finish_sense(command, inaccessible(role.standing));
      return true;
    default:
      return false;
  }
}

bool limited(const Unit& unit) { return (unit.gate() & Unit::kNotOwner) == 0; }

void hold(Unit& unit, Command& command) {
  if (!unit.hold()) {
    return finish_status(command, limited(unit) ? scsi::Status::kTaskSetFull : scsi::Status::kBusy);
  }
  command.stage = Stage::kHeld;
  if (command.held_since < 0) command.held_since = *command.nexus->reactor_context().now;
  ++command.itl->held;
  ++command.nexus->held;
}

Command* first_held(const Itl& itl) {
  for (Command* c = itl.active_head; c; c = c->next_active) {
    if (c->stage == Stage::kHeld) return c;
  }
  return nullptr;
}

bool waited_too_long(const Command& command) {
  return *command.nexus->reactor_context().now - command.held_since >= limits::kHoldCommands;
}

// The task set no longer blocks the command.
void run_unblocked(Command& command) {
  Unit& unit = command.itl->unit();
  command.stage = Stage::kRunning;
  if (command.aborted) return finish_aborted(command);
  const uint64_t word = unit.gate_word();
  if ((word & Unit::kNotOwner) || !command.prepared || command.epoch != 0) [[unlikely]]
    return place(unit, command);
  if (is_still_admitted(unit, command, word)) run(unit, command);
}

}  // namespace

bool begin_by_detour(Unit& unit, Command& command) {
  if (!passes_removed(unit, command)) return false;
  const Role role = unit.role();
  if (role.standing == Standing::kOwner) {
    if (!parse_and_admit(unit, command, unit.gate_word())) return false;
    if (want_data(command)) return true;
    place(unit, command);
    return false;
  }
  if (command.epoch != 0) {
    finish_not_owner(command);
    return false;
  }
  const ByteView cdb = command.full_cdb();
  command.info = scsi::lookup_command(cdb[0], cdb.size() > 1 ? cdb[1] & 0x1f : 0);
  if (command.info && cdb.size() < command.info->cdb_length) {
    refuse_cdb(unit, command, Sense::invalid_field_in_cdb(static_cast<uint16_t>(cdb.size())));
    return false;
  }
  if (!passes_attention(unit, command)) return false;
  if (role.standing == Standing::kUnavailable && !answers_itself(command, role.standing)) {
    finish_sense(command, inaccessible(role.standing));
    return false;
  }
  // An owner accepts no more per command, whatever the host announces (R14).
  command.data_out_wanted = std::min(command.expected_data_out, limits::kMaxTransferBytes);
  if (want_data(command)) return true;
  place(unit, command);
  return false;
}

void place(Unit& unit, Command& command) {
  const CommandContext& itl = *command.itl;
  if (itl.held != 0) {
    const Standing standing = unit.role().standing;
    if (standing == Standing::kOwner || !answers_itself(command, standing)) {
      return hold(unit, command);
    }
  }
  if (!go(unit, command)) hold(unit, command);
}

void run_blocked(Itl& itl) {
  // Commands may complete immediately and call this again; the outermost call continues.
  if (itl.releasing) return;
  itl.releasing = true;
  while (Command* command = itl.first_runnable()) run_unblocked(*command);
  const auto drained = itl.take_drained();
  itl.releasing = false;
  for (const auto& done : drained) done();
}

void resume(Itl& itl) {
  // Commands that end here may cause new ones, which queue behind held ones or run by themselves.
  if (itl.resuming) return;
  const std::shared_ptr<Itl> alive = itl.shared_from_this();
  itl.resuming = true;
  while (Command* command = itl.held != 0 ? first_held(itl) : nullptr) {
    itl.leave_held();
    command->stage = Stage::kRunning;
    if (go(itl.unit(), *command)) continue;
    hold(itl.unit(), *command);
    break;
  }
  itl.resuming = false;
}

void end_overdue(Itl& itl) {
  if (itl.held == 0 || itl.unit().role().standing == Standing::kOwner) return;
  const std::shared_ptr<Itl> alive = itl.shared_from_this();
  while (Command* command = first_held(itl)) {
    if (!waited_too_long(*command)) return;
    finish_sense(*command, inaccessible(Standing::kTransitioning));
  }
}

void return_forwarded(Command& command) {
  command.link.reset();
  command.submitted = false;
  command.stage = Stage::kRunning;
  if (command.aborted) return finish_aborted(command);
  if (command.held_since >= 0 && waited_too_long(command)) {
    return finish_sense(command, inaccessible(Standing::kTransitioning));
  }
  hold(command.itl->unit(), command);
}

}  // namespace sluice::lun
