// WRITE SAME(10) and (16) (SBC-4 §5.51, §5.52).
#include <algorithm>
#include <cstring>

#include "commands/handlers.h"
#include "commands/media_range.h"

namespace sluice::lun {
namespace {

constexpr uint64_t kChunk = 256u << 10;  // bytes of the pattern written at a time

struct Filling {
  uint64_t done = 0;
  uint64_t length = 0;
};

void zeroed(Unit&, Command& command) { finish_good(command); }

void write_next(Unit& unit, Command& command);

void chunk_written(Unit& unit, Command& command) { write_next(unit, command); }

void write_next(Unit& unit, Command& command) {
  Filling& f = command.scratch_as<Filling>();
  if (f.done == f.length) {
    command.data_in.clear();
    return finish_good(command);
  }
  const Slice& pattern = command.data_in.front();
  const uint64_t part = std::min<uint64_t>(pattern.size, f.length - f.done);
  command.iov.clear();
  command.iov.push_back({pattern.data, part});
  const uint64_t offset = byte_offset(unit, command) + f.done;
  f.done += part;
  run_io(unit, command, backend::Op::kWrite, 0, offset, part, chunk_written);
}

bool all_zero(ByteView block) {
  return block[0] == 0 && std::memcmp(block.data(), block.data() + 1, block.size() - 1) == 0;
}

}  // namespace

bool writes_zeros(Command& command) {
  if (command.range.ndob) return true;
  if (command.data_out_size == 0 || command.data_out_size < command.data_out_wanted) return false;
  return all_zero(gather_data_out(command));
}

// UNMAP requests deallocation if deallocated blocks read as the pattern. That holds for zeros; with
// any other pattern every block is written, which the standard permits.
void handle_write_same(Unit& unit, Command& command) {
  const uint32_t block = unit.block_size();
  const uint64_t offset = byte_offset(unit, command);
  const uint64_t length = command.range.blocks * block;
  if (command.data_out_size < command.data_out_wanted) return finish_short_data(command);
  if (writes_zeros(command)) {
    const uint8_t flags = command.range.unmap ? uint8_t{backend::kIoMayUnmap} : uint8_t{0};
    return run_io(unit, command, backend::Op::kWriteZeroes, flags, offset, length, zeroed);
  }
  const ByteView pattern = gather_data_out(command);
  const uint64_t chunk = std::min(kChunk, length);
  if (!allocate_data_in(command, chunk)) return finish_status(command, scsi::Status::kBusy);
  const Slice& fill = command.data_in.front();
  for (uint32_t at = 0; at < fill.size; at += block) {
    std::memcpy(fill.data + at, pattern.data(), block);
  }
  command.start_scratch<Filling>().length = length;
  write_next(unit, command);
}

}  // namespace sluice::lun
