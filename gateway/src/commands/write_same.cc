// WRITE SAME(10) and (16) (SBC-4 §5.51, §5.52), in pieces: each piece of blocks is held while it is
// written, one after the other, and the reactor serves other commands in between. So an overlapping
// command waits for one piece. SBC-4 requires no
// atomicity of WRITE SAME.
#include <algorithm>
#include <cstring>

#include "commands/handlers.h"
#include "commands/media_range.h"

namespace sluice::lun {
namespace {

constexpr uint64_t kChunk = 256u << 10;  // bytes of the pattern written at a time

struct Filling {
  uint64_t next = 0;   // first block that is held
  uint64_t left = 0;   // blocks, from `next`
  uint64_t piece = 0;  // blocks that are held
  uint64_t done = 0;   // bytes of them that are written, or are being written
  bool zeros = false;
};

void write_piece(Unit& unit, Command& command);

void hold_next(Unit& unit, Command& command) {
  Filling& f = command.scratch_as<Filling>();
  f.next += f.piece;
  f.left -= f.piece;
  f.piece = piece_of(unit, f.next, f.left);
  f.done = 0;
  hold_range(unit, command, f.next, f.piece, true, write_piece);
}

void piece_written(Unit& /*unit*/, Command& command) {
  const Filling& f = command.scratch_as<Filling>();
  if (f.left == f.piece) {
    command.data_in.clear();
    return finish_good(command);
  }
  const ReactorContext& context = command.nexus->reactor_context();
  context.reactors->post(context.reactor, [&command] { hold_next(command.itl->unit(), command); });
}

void write_chunk(Unit& unit, Command& command) {
  Filling& f = command.scratch_as<Filling>();
  const uint64_t length = f.piece * unit.block_size();
  if (f.done == length) return piece_written(unit, command);
  const Slice& pattern = command.data_in.front();
  const uint64_t part = std::min<uint64_t>(pattern.size, length - f.done);
  command.iov.clear();
  command.iov.push_back({pattern.data, part});
  const uint64_t offset = f.next * unit.block_size() + f.done;
  f.done += part;
  run_io(unit, command, backend::Op::kWrite, 0, offset, part, write_chunk);
}

void write_piece(Unit& unit, Command& command) {
  const Filling& f = command.scratch_as<Filling>();
  if (!f.zeros) return write_chunk(unit, command);
  const uint8_t flags = command.range.unmap ? uint8_t{backend::kIoMayUnmap} : uint8_t{0};
  run_io(unit, command, backend::Op::kWriteZeroes, flags, f.next * unit.block_size(),
         f.piece * unit.block_size(), piece_written);
}

bool all_zero(ByteView block) {
  return block[0] == 0 && std::memcmp(block.data(), block.data() + 1, block.size() - 1) == 0;
}

// Fills data_in with the pattern. False: out of memory.
bool repeat_pattern(const Unit& unit, Command& command) {
  const uint32_t block = unit.block_size();
  const ByteView pattern = gather_data_out(command);
  if (!allocate_data_in(command, std::min(kChunk, command.range.blocks * block))) {
    return false;
  }
  const Slice& fill = command.data_in.front();
  for (uint32_t at = 0; at < fill.size; at += block) {
    std::memcpy(fill.data + at, pattern.data(), block);
  }
  return true;
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
  if (command.data_out_size < command.data_out_wanted) return finish_short_data(command);
  const bool zeros = writes_zeros(command);
  if (!zeros && !repeat_pattern(unit, command)) {
    return finish_status(command, scsi::Status::kBusy);
  }
  Filling& f = command.start_scratch<Filling>();
  f.next = command.range.lba;
  f.left = command.range.blocks;
  f.piece = command.hold.last - command.hold.first + 1;
  f.zeros = zeros;
  write_piece(unit, command);
}

}  // namespace sluice::lun
