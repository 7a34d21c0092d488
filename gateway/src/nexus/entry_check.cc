#include "nexus/entry_check.h"

#include <algorithm>

#include "base/limits.h"
#include "nexus/without_owner.h"
#include "unit/unit_sense.h"

namespace sluice::lun {
namespace {

using scsi::Sense;

// The owner checks the CDB against the unit.
Verdict check_for_owner(Unit& unit, Command& command, Standing standing, Decision* decision) {
  if (command.epoch != 0) return decision->end(Outcome::kNotOwner);
  const ByteView cdb = command.full_cdb();
  command.info = scsi::lookup_command(cdb[0], cdb.size() > 1 ? cdb[1] & 0x1f : 0);
  if (command.info && cdb.size() < command.info->cdb_length) {
    const Sense sense = Sense::invalid_field_in_cdb(static_cast<uint16_t>(cdb.size()));
    return refuse_cdb(unit, command, sense, decision);
  }
  if (const Verdict v = take_attention(unit, command, decision); v != Verdict::kProceed) return v;
  if (is_unavailable(standing) && !answers_itself(command, standing)) {
    return decision->answer(inaccessible(standing));
  }
  // An owner accepts no more per command, whatever the host announces (R14).
  command.data_out_wanted = std::min(command.expected_data_out, limits::kMaxTransferBytes);
  return Verdict::kProceed;
}

}  // namespace

Verdict check_by_role(Unit& unit, Command& command, uint64_t word, Decision* decision) {
  if (const Verdict v = check_removed(unit, command, decision); v != Verdict::kProceed) return v;
  const Standing standing = unit.role().standing;
  if (standing == Standing::kOwner) return check_as_owner(unit, command, word, decision);
  return check_for_owner(unit, command, standing, decision);
}

}  // namespace sluice::lun
