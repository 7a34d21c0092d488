// The checks of commands on logical blocks before their data is requested (handlers.h: Prepare).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/safety_mutation.h"
#include "commands/handler.h"

namespace sluice::lun {

bool prepare_parameter_list(Unit& unit, Command& command, scsi::Sense* sense);
bool prepare_blocks_only(Unit& unit, Command& command, scsi::Sense* sense);  // no hold, no data
bool prepare_read(Unit& unit, Command& command, scsi::Sense* sense);
bool prepare_write(Unit& unit, Command& command, scsi::Sense* sense);
bool prepare_write_atomic(Unit& unit, Command& command, scsi::Sense* sense);
bool prepare_write_and_verify(Unit& unit, Command& command, scsi::Sense* sense);
bool prepare_verify(Unit& unit, Command& command, scsi::Sense* sense);
bool prepare_write_same(Unit& unit, Command& command, scsi::Sense* sense);
bool prepare_compare_and_write(Unit& unit, Command& command, scsi::Sense* sense);

inline uint64_t byte_offset(const Unit& unit, const Command& command) {
  return command.range.lba * unit.block_size();
}

inline uint8_t write_flags(const Command& command) {
  return command.range.fua ? uint8_t{backend::kIoFua} : uint8_t{0};
}

// How many of `left` blocks from `lba` on WRITE SAME and UNMAP hold at a time: no more than to the
// next multiple of limits::kMaxHeldBytes, which units of deallocation divide.
inline uint64_t piece_of(const Unit& unit, uint64_t lba, uint64_t left) {
  if (mutation_disables(Guard::kPiece)) return left;
  const uint64_t blocks = limits::kMaxHeldBytes / unit.block_size();
  return std::min(left, blocks - lba % blocks);
}

// Whether the blocks of a WRITE SAME become zeros. Its data must be complete.
bool writes_zeros(Command& command);

// The number of bytes of data_out that form whole blocks.
inline uint64_t whole_blocks_sent(const Unit& unit, const Command& command) {
  return command.data_out_size - command.data_out_size % unit.block_size();
}

}  // namespace sluice::lun
