// READ, WRITE and WRITE ATOMIC (SBC-4 §5.13-5.17, §5.42-5.46, §5.53).
#include <algorithm>
#include <climits>

#include "commands/handlers.h"
#include "commands/media_range.h"

namespace sluice::lun {
namespace {

void read_complete(Unit&, Command& command) { finish_good(command); }
void write_complete(Unit&, Command& command) { finish_good(command); }

// The bytes to read of `wanted`: only as many whole blocks as the initiator can receive.
uint64_t bytes_to_read(const Unit& unit, const Command& command, uint64_t wanted) {
  const uint64_t block = unit.block_size();
  const uint64_t room = (uint64_t{command.expected_data_in} + block - 1) / block * block;
  return std::min(wanted, room);
}

}  // namespace

void handle_read(Unit& unit, Command& command) {
  const uint64_t offset = byte_offset(unit, command);
  const uint64_t wanted = command.range.blocks * unit.block_size();
  const uint64_t length = bytes_to_read(unit, command, wanted);
  command.data_in_size = static_cast<uint32_t>(wanted);
  if (length == 0) return finish_good(command);
  if (!command.needs_stable_data || unit.backend().info().lends_constants) {
    if (const uint8_t* memory = unit.backend().borrow(offset, length)) {
      // Never written to: Slice has no constant form.
      command.data_in.push_back({command.itl->backend_loan(), const_cast<uint8_t*>(memory),
                                 static_cast<uint32_t>(length)});
      return finish_good(command);
    }
  }
  if (!allocate_data_in(command, length)) return finish_status(command, scsi::Status::kBusy);
  run_io(unit, command, backend::Op::kRead, 0, offset, length, read_complete);
}

void handle_write(Unit& unit, Command& command) {
  const uint64_t length = whole_blocks_sent(unit, command);
  if (length == 0) return finish_good(command);
  vectors_from_data_out(command, 0, length);
  run_io(unit, command, backend::Op::kWrite, write_flags(command), byte_offset(unit, command),
         length, write_complete);
}

void handle_write_atomic(Unit& unit, Command& command) {
  // All or nothing: a write with missing data would be torn.
  if (command.data_out_size < command.data_out_wanted) return finish_short_data(command);
  const uint64_t length = command.data_out_wanted;
  if (command.data_out.size() > IOV_MAX) {
    // run_io() would take several steps.
    const ByteView all = gather_data_out(command);
    command.iov.assign(1, {const_cast<uint8_t*>(all.data()), all.size()});
  } else {
    vectors_from_data_out(command, 0, length);
  }
  run_io(unit, command, backend::Op::kWrite, write_flags(command) | uint8_t{backend::kIoAtomic},
         byte_offset(unit, command), length, write_complete);
}

}  // namespace sluice::lun
