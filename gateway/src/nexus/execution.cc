#include "nexus/execution.h"

#include "commands/gate.h"

namespace sluice::lun {

bool attribute_known(const Command& command, scsi::Sense* sense) {
  if (command.attribute < TaskAttribute::kAca) [[likely]]
    return true;
  // INVALID MESSAGE ERROR
  *sense = scsi::Sense::make(scsi::SenseKey::kIllegalRequest, 0x49, 0x00);
  return false;
}

bool parse_and_admit(Unit& unit, Command& command, uint64_t word) {
  if (command.epoch != 0 && command.epoch != unit.epoch()) [[unlikely]] {
    finish_not_owner(command);
    return false;
  }
  scsi::Sense sense;
  command.info = scsi::find_command(command.full_cdb(), unit.support(), &sense);
  if (!command.info || !attribute_known(command, &sense)) [[unlikely]] {
    refuse_cdb(unit, command, sense);
    return false;
  }
  if (!is_admitted(unit, command, word)) return false;
  if (!operation(command.info->operation).prepare(unit, command, &sense)) {
    if (sense.key == scsi::SenseKey::kNoSense) {
      finish_good(command);
    } else {
      finish_sense(command, sense);
    }
    return false;
  }
  command.prepared = true;
  return true;
}

}  // namespace sluice::lun
