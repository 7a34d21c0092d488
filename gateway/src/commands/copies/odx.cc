// POPULATE TOKEN (SBC-4 §5.13) and RECEIVE ROD TOKEN INFORMATION (SPC-5 §6.25): a host gets a token
// of 512 bytes that represents the data of some block ranges, and can pass it to another host for a
// copy.
//
// IMMED does not cause an early answer: the command ends when the operation ends. A host sees that
// as a fast background operation.
#include "commands/copies/odx.h"

#include <memory>
#include <vector>

#include "commands/copies/tokens.h"
#include "commands/handlers.h"
#include "scsi/cdb.h"
#include "unit/copy_limits.h"

namespace sluice::lun {
namespace {

using scsi::Sense;
using scsi::SenseKey;

// Longest answer of RECEIVE ROD TOKEN INFORMATION: header, sense data, one token.
constexpr size_t kMaxInformation = 1024;

struct Populate {
  CopyRecord* record = nullptr;
  std::shared_ptr<RodSource> source;
  size_t next = 0;  // range
};

Populate& populate_of(Command& command) { return *command.scratch_as<Populate*>(); }

// Runs however the command ended, possibly while it waited for blocks.
void clean_up(Unit& /*unit*/, Command& command) {
  const std::unique_ptr<Populate> ended(&populate_of(command));
  if (ended->record->running) {
    ended->record->operation.state = scsi::TokenOperationState::kTerminated;
    ended->record->running = false;
  }
}

void populated(Command& command) {
  Populate& p = populate_of(command);
  CopyRecord& record = *p.record;
  if (!command.nexus->tokens().issue(p.source, *command.nexus->reactor_context().now,
                                     &record.token)) {
    return finish_status(command, scsi::Status::kBusy);
  }
  record.running = false;
  record.operation.state = scsi::TokenOperationState::kCompletedWithoutErrors;
  record.operation.blocks_transferred = p.source->blocks();
  record.operation.segments_processed = static_cast<uint16_t>(p.source->ranges().size());
  record.operation.token = &record.token;
  finish_good(command);
}

// Waits for the writers of one range after the other. The watch was set before (change_watch.h).
void next_range(Unit& unit, Command& command) {
  Populate& p = populate_of(command);
  if (p.next == p.source->ranges().size()) return populated(command);
  const scsi::BlockExtent range = p.source->ranges()[p.next++];
  hold_range(unit, command, range.lba, range.blocks, false, next_range);
}

}  // namespace

scsi::TokenBounds token_bounds(const Unit& unit) {
  const scsi::ThirdPartyCopyLimits limits = copy_limits(unit.block_size());
  return {.blocks = unit.blocks(),
          .max_ranges = limits.max_ranges,
          .max_blocks = limits.max_token_blocks,
          .max_inactivity_seconds = limits.max_inactivity_seconds};
}

CopyRecord* start_token_operation(Unit& unit, Command& command, uint32_t list_id, bool populate) {
  bool in_use = false;
  CopyRecord* record = command.nexus->copies().start(unit, true, list_id, &in_use);
  if (record) {
    record->operation.populate = populate;
    record->operation.state = scsi::TokenOperationState::kInProgressForeground;
  } else if (in_use) {  // OPERATION IN PROGRESS
    finish_sense(command, Sense::make(SenseKey::kIllegalRequest, 0x00, 0x16));
  } else {
    finish_status(command, scsi::Status::kBusy);
  }
  return record;
}

void handle_populate_token(Unit& unit, Command& command) {
  if (command.data_out_size < command.data_out_wanted) return finish_short_data(command);
  const auto list =
      scsi::parse_populate_token(command.full_cdb(), token_bounds(unit), gather_data_out(command));
  if (!list) return finish_sense(command, list.sense());
  if (list->ranges.size() == 0) return finish_good(command);
  CopyRecord* record = start_token_operation(unit, command, list->list_id, true);
  if (!record) return;
  std::vector<scsi::BlockExtent> ranges;
  for (size_t i = 0; i < list->ranges.size(); ++i) ranges.push_back(list->ranges.at(i));
  const uint32_t seconds = list->inactivity_seconds != 0
                               ? list->inactivity_seconds
                               : copy_limits(unit.block_size()).default_inactivity_seconds;
  auto populate = std::make_unique<Populate>();
  populate->record = record;
  populate->source =
      std::make_shared<RodSource>(command.itl->shared_unit(), std::move(ranges),
                                  Nanos{seconds} * kSecond, *command.nexus->reactor_context().now);
  unit.changes().add(populate->source);
  command.start_scratch<Populate*>() = populate.release();
  command.cleanup = clean_up;
  next_range(unit, command);
}

void handle_receive_rod_token_information(Unit& unit, Command& command) {
  const ByteView cdb = command.full_cdb();
  const CopyRecord* record = command.nexus->copies().find(unit, true, scsi::token_list_id(cdb));
  if (!record) return finish_sense(command, Sense::invalid_field_in_cdb(2));
  std::vector<uint8_t> data(kMaxInformation);
  const size_t size =
      scsi::build_rod_token_information(record->operation, unit.descriptor_sense(), data);
  finish_data(command, ByteView(data).first(size), scsi::allocation_length(*command.info, cdb));
}

}  // namespace sluice::lun
