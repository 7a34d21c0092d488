#include "nexus/command_routing.h"

#include <algorithm>
#include <optional>

#include "commands/handlers.h"
#include "commands/media_range.h"
#include "nexus/entry_check.h"
#include "nexus/without_owner.h"
#include "unit/bandwidth.h"
#include "unit/unit_sense.h"

namespace sluice::lun {
namespace {

using scsi::Operation;
using scsi::Sense;

// Checks the CDB as an owner does at entry, for a command whose data may have arrived.
Verdict prepare(Unit& unit, Command& command, Decision* decision) {
  Sense sense;
  command.info = scsi::find_command(command.full_cdb(), unit.support(), &sense);
  if (!command.info || !attribute_known(command, &sense)) return decision->answer(sense);
  if (const Verdict v = admit_again(unit, command, unit.gate_word(), decision);
      v != Verdict::kProceed) {
    return v;
  }
  command.data_out_wanted = 0;
  command.wants_hold = false;
  if (const Verdict v = prepare_operation(unit, command, sense, decision); v != Verdict::kProceed) {
    return v;
  }
  // The data that was gathered for another owner may exceed the CDB's length.
  command.data_out_size = std::min(command.data_out_size, command.data_out_wanted);
  return Verdict::kProceed;
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

// A forwarded command that gets no bandwidth in time. If it ended as stale, it would be forwarded
// again without end. Instead its host gets TASK SET FULL (SAM-5 §5.3.1) and sends less. That is
// true because nothing was executed. It is not charged.
bool waited_in_vain(const Command& command) { return command.epoch != 0 && went_stale(command); }

Verdict charge(Unit& unit, Command& command, Decision* decision) {
  if (command.charged || !(unit.gate() & Unit::kLimited)) return Verdict::kProceed;
  const std::optional<uint64_t> bytes = cost(unit, command);
  if (!bytes) return Verdict::kProceed;
  if (waited_in_vain(command)) return decision->answer(scsi::Status::kTaskSetFull);
  const Nanos now = *command.nexus->reactor_context().now;
  if (!unit.bandwidth().take(now, *bytes)) return Verdict::kWait;
  command.charged = true;
  return Verdict::kProceed;
}

Verdict route_here(Unit& unit, Command& command, Decision* decision) {
  if (itl_of(command).resets != 0) return Verdict::kWait;
  if (command.epoch != 0 && command.epoch != unit.epoch()) {
    return decision->end(Outcome::kNotOwner);
  }
  if (command.held_since >= 0 && waited_in_vain(command)) {
    return decision->answer(scsi::Status::kTaskSetFull);
  }
  const Verdict checked = command.prepared ? admit_again(unit, command, unit.gate_word(), decision)
                                           : prepare(unit, command, decision);
  return checked == Verdict::kProceed ? charge(unit, command, decision) : checked;
}

}  // namespace

Verdict route_by_role(Unit& unit, Command& command, Decision* decision) {
  if (const Verdict v = check_removed(unit, command, decision); v != Verdict::kProceed) return v;
  const Role role = unit.role();
  if (role.standing == Standing::kOwner) return route_here(unit, command, decision);
  command.prepared = false;
  if (command.epoch != 0) return decision->end(Outcome::kNotOwner);
  if (answers_itself(command, role.standing)) {
    return check_without_owner(unit, command, role.standing, decision);
  }
  switch (role.standing) {
    case Standing::kForwarder:
      if (itl_of(command).resets != 0) return Verdict::kWait;
      return decision->forward(role);
    case Standing::kUnavailable:
    case Standing::kCutOff:
      return decision->answer(inaccessible(role.standing));
    default:
      return Verdict::kWait;
  }
}

}  // namespace sluice::lun
