// UNMAP (SBC-4 §5.35). Each descriptor's range is held while it is discarded, one after the other.
// SBC-4 leaves the order open, and what remains undone after an error.
#include "commands/handlers.h"
#include "commands/media_range.h"
#include "scsi/unmap_list.h"

namespace sluice::lun {
namespace {

struct Unmapping {
  size_t next = 0;  // descriptor
  size_t count = 0;
};

scsi::Outcome<scsi::UnmapList> parse(const Unit& unit, Command& command) {
  const scsi::UnmapBounds bounds{unit.blocks(), unit.limits().max_unmap_descriptors,
                                 unit.limits().max_unmap_blocks};
  return scsi::parse_unmap(command.full_cdb(), bounds, gather_data_out(command));
}

void next_descriptor(Unit& unit, Command& command);

void discard(Unit& unit, Command& command) {
  const uint64_t block = unit.block_size();
  const uint64_t blocks = command.hold.last - command.hold.first + 1;
  // With LBPRZ the backend zeroes the edges that do not fill a deallocation unit (backend.h,
  // kDiscard), so that the whole range reads zeros.
  run_io(unit, command, backend::Op::kDiscard, 0, command.hold.first * block, blocks * block,
         next_descriptor);
}

void next_descriptor(Unit& unit, Command& command) {
  Unmapping& u = command.scratch_as<Unmapping>();
  // Parsed again instead of stored: the list is in data_out until the end.
  const auto list = parse(unit, command);
  if (!list) return finish_sense(command, list.sense());
  while (u.next < u.count) {
    const scsi::BlockExtent extent = list->at(u.next++);
    if (extent.blocks == 0) continue;
    return hold_range(unit, command, extent.lba, extent.blocks, true, discard);
  }
  finish_good(command);
}

}  // namespace

void handle_unmap(Unit& unit, Command& command) {
  const auto list = parse(unit, command);
  if (!list) return finish_sense(command, list.sense());
  command.start_scratch<Unmapping>().count = list->size();
  next_descriptor(unit, command);
}

}  // namespace sluice::lun
