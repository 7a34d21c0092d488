// ORWRITE(16) (SBC-4 §5.11): each block becomes itself OR the data sent, atomically. Only the set
// operation exists here; generations are for ORWRITE(32).
#include <algorithm>

#include "commands/handlers.h"
#include "commands/media_range.h"

namespace sluice::lun {
namespace {

void written(Unit&, Command& command) {
  command.data_in.clear();
  finish_good(command);
}

void or_into(std::vector<Slice>& medium, const std::vector<Slice>& data_out) {
  size_t index = 0;
  size_t at = 0;
  for (Slice& slice : medium) {
    for (size_t i = 0; i < slice.size;) {
      while (at == data_out[index].size) {
        ++index;
        at = 0;
      }
      const size_t part = std::min<size_t>(slice.size - i, data_out[index].size - at);
      for (size_t k = 0; k < part; ++k) slice.data[i + k] |= data_out[index].data[at + k];
      i += part;
      at += part;
    }
  }
}

void was_read(Unit& unit, Command& command) {
  or_into(command.data_in, command.data_out);
  command.iov.clear();
  uint64_t length = 0;
  for (const Slice& slice : command.data_in) {
    command.iov.push_back({slice.data, slice.size});
    length += slice.size;
  }
  run_io(unit, command, backend::Op::kWrite, write_flags(command), byte_offset(unit, command),
         length, written);
}

}  // namespace

void handle_or_write(Unit& unit, Command& command) {
  const uint64_t length = whole_blocks_sent(unit, command);
  if (length == 0) return finish_good(command);
  if (!allocate_data_in(command, length)) return finish_status(command, scsi::Status::kBusy);
  run_io(unit, command, backend::Op::kRead, 0, byte_offset(unit, command), length, was_read);
}

}  // namespace sluice::lun
