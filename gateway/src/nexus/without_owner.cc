#include "nexus/without_owner.h"

#include "commands/gate.h"
#include "unit/unit_sense.h"

namespace sluice::lun {
namespace {

using scsi::Operation;
using scsi::Sense;

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

}  // namespace

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

Verdict check_without_owner(Unit& unit, Command& command, Standing standing, Decision* decision) {
  if (command.info->operation == Operation::kTestUnitReady) {
    return decision->answer(inaccessible(standing));
  }
  Sense sense;
  if (!scsi::find_command(command.full_cdb(), &sense) || !attribute_known(command, &sense)) {
    return refuse_cdb(unit, command, sense, decision);
  }
  command.wants_hold = false;
  return Verdict::kProceed;
}

}  // namespace sluice::lun
