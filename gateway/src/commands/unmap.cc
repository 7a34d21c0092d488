// UNMAP (SBC-4 §5.35). Each descriptor's range is held in pieces while it is discarded, one after
// the other. SBC-4 leaves the order open, and what remains undone after an error.
#include "commands/handlers.h"
#include "commands/media_range.h"
#include "scsi/unmap_list.h"

namespace sluice::lun {
namespace {

struct Unmapping {
  size_t next = 0;  // descriptor
  size_t count = 0;
  uint64_t done = 0;  // blocks of `next`
};

scsi::Outcome<scsi::UnmapList> parse(const Unit& unit, Command& command) {
  const scsi::UnmapBounds bounds{unit.blocks(), unit.limits().max_unmap_descriptors,
                                 unit.limits().max_unmap_blocks};
  return scsi::parse_unmap(command.full_cdb(), bounds, gather_data_out(command));
}

void next_piece(Unit& unit, Command& command);

void discard(Unit& unit, Command& command) {
  const uint64_t block = unit.block_size();
  const uint64_t blocks = command.hold.last - command.hold.first + 1;
  // With LBPRZ the backend zeroes the edges that do not fill a deallocation unit (backend.h,
  // kDiscard), so that the whole range reads zeros.
  run_io(unit, command, backend::Op::kDiscard, 0, command.hold.first * block, blocks * block,
         next_piece);
}

void next_piece(Unit& unit, Command& command) {
  Unmapping& u = command.scratch_as<Unmapping>();
  // Parsed again instead of stored: the list is in data_out until the end.
  const auto list = parse(unit, command);
  if (!list) return finish_sense(command, list.sense());
  while (u.next < u.count) {
    const scsi::BlockExtent extent = list->at(u.next);
    if (u.done < extent.blocks) {
      const uint64_t first = extent.lba + u.done;
      const uint64_t blocks = piece_of(unit, first, extent.blocks - u.done);
      u.done += blocks;
      return hold_range(unit, command, first, blocks, true, discard);
    }
    ++u.next;
    u.done = 0;
  }
  finish_good(command);
}

}  // namespace

void handle_unmap(Unit& unit, Command& command) {
  const auto list = parse(unit, command);
  if (!list) return finish_sense(command, list.sense());
  command.start_scratch<Unmapping>().count = list->size();
  next_piece(unit, command);
}

}  // namespace sluice::lun
