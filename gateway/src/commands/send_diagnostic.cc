// SEND DIAGNOSTIC with SELFTEST: the default self-test (SPC-5 §6.42).
#include "commands/handlers.h"

namespace sluice::lun {
namespace {

void passed(Unit&, Command& command) {
  command.data_in.clear();
  finish_good(command);
}

// A truncated medium fails here.
void first_read(Unit& unit, Command& command) {
  if (!allocate_data_in(command, unit.block_size())) {
    return finish_status(command, scsi::Status::kBusy);
  }
  run_io(unit, command, backend::Op::kRead, 0, (unit.blocks() - 1) * unit.block_size(),
         unit.block_size(), passed);
}

}  // namespace

// The unit reads its first and its last block; finish_errno() answers a failure. Without SELFTEST
// nothing is done, because no diagnostic page is supported.
void handle_send_diagnostic(Unit& unit, Command& command) {
  const bool self_test = (command.full_cdb()[1] & 0x04) != 0;
  if (!self_test || unit.blocks() == 0) return finish_good(command);
  if (!allocate_data_in(command, unit.block_size())) {
    return finish_status(command, scsi::Status::kBusy);
  }
  run_io(unit, command, backend::Op::kRead, 0, 0, unit.block_size(), first_read);
}

}  // namespace sluice::lun
