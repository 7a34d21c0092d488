// VERIFY (SBC-4 §5.36-5.39) and WRITE AND VERIFY (§5.47-5.50).
#include <algorithm>

#include "commands/compare.h"
#include "commands/handlers.h"
#include "commands/media_range.h"

namespace sluice::lun {
namespace {

// Bytes read and compared at a time: limits the memory of a command without data-in.
constexpr uint64_t kChunk = 256u << 10;

struct Verifying {
  uint64_t done = 0;    // bytes verified
  uint64_t length = 0;  // total bytes
  uint64_t chunk = 0;   // bytes being read
  bool compare = false;
  bool one_block = false;  // BYTCHK 11b: every block against the same one
};

void next_chunk(Unit& unit, Command& command);

bool chunk_is_good(Unit& unit, Command& command) {
  Verifying& v = command.scratch_as<Verifying>();
  if (!v.compare) return true;
  const uint64_t step = v.one_block ? unit.block_size() : v.chunk;
  std::vector<Slice> one(1);
  for (uint64_t at = 0; at < v.chunk; at += step) {
    const std::vector<Slice>* medium = &command.data_in;
    if (v.one_block) {
      // kChunk fits one buffer, and blocks divide it.
      one[0].data = command.data_in.front().data + at;
      one[0].size = static_cast<uint32_t>(step);
      medium = &one;
    }
    const uint64_t skip = v.one_block ? 0 : v.done;
    if (const auto offset = first_difference(*medium, command.data_out, skip, step)) {
      finish_miscompare(command, skip + *offset);
      return false;
    }
  }
  return true;
}

void chunk_read(Unit& unit, Command& command) {
  Verifying& v = command.scratch_as<Verifying>();
  if (!chunk_is_good(unit, command)) return;
  v.done += v.chunk;
  next_chunk(unit, command);
}

void next_chunk(Unit& unit, Command& command) {
  Verifying& v = command.scratch_as<Verifying>();
  if (v.done == v.length) {
    command.data_in.clear();
    return finish_good(command);
  }
  v.chunk = std::min(kChunk, v.length - v.done);
  if (!allocate_data_in(command, v.chunk)) return finish_status(command, scsi::Status::kBusy);
  run_io(unit, command, backend::Op::kRead, 0, byte_offset(unit, command) + v.done, v.chunk,
         chunk_read);
}

void verify(Unit& unit, Command& command, uint64_t length, bool compare, bool one_block) {
  Verifying& v = command.start_scratch<Verifying>();
  v.length = length;
  v.compare = compare;
  v.one_block = one_block;
  next_chunk(unit, command);
}

void written(Unit& unit, Command& command) {
  verify(unit, command, whole_blocks_sent(unit, command), command.range.bytchk == 1, false);
}

}  // namespace

// BYTCHK 00b: the medium is read, no data compared.
void handle_verify(Unit& unit, Command& command) {
  const uint8_t bytchk = command.range.bytchk;
  const uint64_t blocks = command.range.blocks;
  if (bytchk == 3 && command.data_out_size < unit.block_size()) return finish_short_data(command);
  const uint64_t length =
      bytchk == 1 ? whole_blocks_sent(unit, command) : blocks * unit.block_size();
  verify(unit, command, length, bytchk != 0, bytchk == 3);
}

void handle_write_and_verify(Unit& unit, Command& command) {
  const uint64_t length = whole_blocks_sent(unit, command);
  if (length == 0) return finish_good(command);
  vectors_from_data_out(command, 0, length);
  // "Written to the medium" (SBC-4 §5.47): past any volatile cache.
  run_io(unit, command, backend::Op::kWrite, backend::kIoFua, byte_offset(unit, command), length,
         written);
}

}  // namespace sluice::lun
