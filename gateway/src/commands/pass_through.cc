// Commands that the device behind the unit executes itself (scsi/pass_through_commands.h). They
// have passed the gate as every command: the gateway handles reservations, access state and unit
// attentions.
#include <algorithm>

#include "base/limits.h"
#include "commands/handlers.h"

namespace sluice::lun {
namespace {

constexpr uint8_t kReadBuffer = 0x3c;
constexpr uint8_t kReadBufferData = 0x02;

uint32_t room(const Command& command) {
  return scsi::allocation_length(*command.info, command.full_cdb());
}

// The device may have returned less than the initiator can receive.
void answered(Unit&, Command& command) {
  auto left = static_cast<uint32_t>(command.io.result);
  command.data_in_size = left;
  for (Slice& slice : command.data_in) {
    slice.size = std::min(slice.size, left);
    left -= slice.size;
  }
  std::erase_if(command.data_in, [](const Slice& slice) { return slice.size == 0; });
  finish_good(command);
}

}  // namespace

bool prepare_pass_through(Unit& /*unit*/, Command& command, scsi::Sense* sense) {
  const ByteView cdb = command.full_cdb();
  if (cdb[0] == kReadBuffer && cdb[1] < kReadBufferData) {
    *sense = scsi::Sense::invalid_field_in_cdb(1, 4);
    return false;
  }
  if (room(command) <= limits::kMaxPassedData) return true;
  *sense = scsi::Sense::invalid_field_in_cdb(0);
  sense->specific = scsi::Sense::Specific::kNone;
  return false;
}

bool prepare_log_sense(Unit& unit, Command& command, scsi::Sense* sense) {
  return !unit.support().pass_through || prepare_pass_through(unit, command, sense);
}

void handle_pass_through(Unit& unit, Command& command) {
  const uint32_t length = room(command);
  command.iov.clear();
  if (length > 0 && !allocate_data_in(command, length)) {
    return finish_status(command, scsi::Status::kBusy);
  }
  run_io(unit, command, backend::Op::kCdb, 0, 0, length, answered);
}

}  // namespace sluice::lun
