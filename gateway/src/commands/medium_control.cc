// SYNCHRONIZE CACHE, PRE-FETCH, START STOP UNIT, GET LBA STATUS: commands on the medium that
// transfer no block data.
#include <algorithm>
#include <memory>
#include <vector>

#include "commands/handlers.h"
#include "commands/media_range.h"
#include "scsi/lba_status.h"

namespace sluice::lun {
namespace {

constexpr size_t kMaxExtents = 128;                       // descriptors per GET LBA STATUS
constexpr uint64_t kMaxQueriedBytes = uint64_t{1} << 30;  // bytes one descriptor may cover

void flushed(Unit&, Command& command) { finish_good(command); }

void flushed_then_stop(Unit& unit, Command& command) {
  unit.set_stopped(true);
  finish_good(command);
}

bool is_start_stop_power_condition(ByteView cdb) { return (cdb[4] & 0xf0) != 0; }

// The extents from `lba` on.
struct AllocationQuery {
  uint64_t lba = 0;
  uint64_t capacity = 0;  // blocks
  uint64_t block = 0;     // bytes
  size_t most = 0;        // extents
  std::vector<scsi::LbaStatus> found = {};

  void ask(const backend::Backend& backend) {
    while (found.size() < most && lba < capacity) {
      const uint64_t queried = std::min((capacity - lba) * block, kMaxQueriedBytes);
      const auto extent = backend.allocation(lba * block, queried);
      if (!extent) return;
      // A block that is partly allocated counts as mapped.
      const uint64_t length = std::min(extent.value().length, queried);
      const bool allocated = extent.value().allocated || length < block;
      const uint64_t blocks = std::max<uint64_t>(1, length / block);
      found.push_back({lba, static_cast<uint32_t>(blocks),
                       allocated ? scsi::Mapping::kMapped : scsi::Mapping::kDeallocated});
      lba += blocks;
    }
  }
};

}  // namespace

// Flushes the whole cache regardless of the range, which is permitted; fdatasync can do nothing
// else. With IMMED, GOOD also follows the flush (SBC-4 §5.29 permits that), because a later error
// could not be reported.
void handle_synchronize_cache(Unit& unit, Command& command) {
  run_io(unit, command, backend::Op::kFlush, 0, 0, 0, flushed);
}

// The gateway has no cache of its own for the blocks, so they never "will all fit" (SBC-4 §5.12):
// GOOD, not CONDITION MET.
void handle_pre_fetch(Unit& /*unit*/, Command& command) { finish_good(command); }

// SBC-4 §5.28. LOEJ would need a removable medium; POWER CONDITION other than 0 needs power
// conditions.
void handle_start_stop_unit(Unit& unit, Command& command) {
  const ByteView cdb = command.full_cdb();
  const bool start = (cdb[4] & 0x01) != 0;
  const bool no_flush = (cdb[4] & 0x04) != 0;
  if (is_start_stop_power_condition(cdb)) {
    return finish_sense(command, scsi::Sense::invalid_field_in_cdb(4, 7));
  }
  if (cdb[4] & 0x02) return finish_sense(command, scsi::Sense::invalid_field_in_cdb(4, 1));
  if (start) {
    unit.set_stopped(false);
    return finish_good(command);
  }
  if (no_flush) return flushed_then_stop(unit, command);
  run_io(unit, command, backend::Op::kFlush, 0, 0, 0, flushed_then_stop);
}

// SBC-4 §5.6: contiguous descriptors from the starting LBA; it may return fewer than all.
void handle_get_lba_status(Unit& unit, Command& command) {
  const uint32_t room = scsi::allocation_length(*command.info, command.full_cdb());
  const uint64_t lba = command.range.lba;
  if (lba >= unit.blocks()) return finish_sense(command, scsi::Sense::lba_out_of_range(lba));
  auto status = std::make_shared<AllocationQuery>(
      AllocationQuery{.lba = lba,
                      .capacity = unit.blocks(),
                      .block = unit.block_size(),
                      .most = std::min(kMaxExtents, scsi::lba_status_capacity(room))});
  ask_medium(
      unit, command, [status](const backend::Backend& backend) { status->ask(backend); },
      [status, room, &command] {
        const std::vector<scsi::LbaStatus>& found = status->found;
        if (found.empty()) return finish_errno(command, -EIO, backend::Op::kRead);
        std::vector<uint8_t> out(8 + 16 * found.size());
        const size_t size = scsi::build_lba_status(found, out);
        finish_data(command, ByteView(out).first(size), room);
      });
}

}  // namespace sluice::lun
