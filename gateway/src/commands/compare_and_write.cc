// COMPARE AND WRITE (SBC-4 §5.3). The exclusive hold on its blocks makes it atomic: no other
// command reads or writes them between the comparison and the end of the write.
#include "commands/compare.h"
#include "commands/handlers.h"
#include "commands/media_range.h"

namespace sluice::lun {
namespace {

void written(Unit&, Command& command) { finish_good(command); }

void was_read(Unit& unit, Command& command) {
  const uint64_t length = command.range.blocks * unit.block_size();
  const auto offset = first_difference(command.data_in, command.data_out, 0, length);
  command.data_in.clear();
  if (offset) return finish_miscompare(command, *offset);
  vectors_from_data_out(command, length, length);
  run_io(unit, command, backend::Op::kWrite, write_flags(command), byte_offset(unit, command),
         length, written);
}

}  // namespace

void handle_compare_and_write(Unit& unit, Command& command) {
  if (command.data_out_size < command.data_out_wanted) return finish_short_data(command);
  const uint64_t length = command.range.blocks * unit.block_size();
  if (!allocate_data_in(command, length)) return finish_status(command, scsi::Status::kBusy);
  run_io(unit, command, backend::Op::kRead, 0, byte_offset(unit, command), length, was_read);
}

}  // namespace sluice::lun
