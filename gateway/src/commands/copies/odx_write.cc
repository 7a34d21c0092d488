// WRITE USING TOKEN (SBC-4 §5.56): copies what a token stands for, or zeros, into block ranges.
#include <memory>
#include <vector>

#include "commands/copies/copier.h"
#include "commands/copies/odx.h"
#include "commands/copies/tokens.h"
#include "commands/handlers.h"

namespace sluice::lun {
namespace {

using scsi::Sense;
using scsi::SenseKey;

constexpr uint16_t kOffsetIntoRodAt = 8;
constexpr uint16_t kTokenLengthAt = 6;  // in the token
constexpr uint16_t kRangesAt = 536;

Sense invalid_token(uint8_t ascq) { return Sense::make(SenseKey::kIllegalRequest, 0x23, ascq); }

class TokenWrite {
 public:
  TokenWrite(Unit& unit, Command& command) : unit_(unit), command_(command), copier_(command) {}

  // What to copy. Another key than kNoSense: refused.
  Sense plan(const scsi::WriteUsingToken& list);
  bool reserve_memory() { return !source_ || copier_.reserve_memory(); }
  void start(CopyRecord* record) {
    record_ = record;
    next();
  }

 private:
  Sense plan_zeros(const scsi::RangeList& ranges);
  Sense plan_copy(uint64_t offset, const scsi::RangeList& ranges);
  Sense still_valid() const;
  void next();
  void extent_done(const CopyFault& fault);
  void fail(const CopyFault& fault);
  void end();

  Unit& unit_;
  Command& command_;
  Copier copier_;
  CopyRecord* record_ = nullptr;
  scsi::RodToken token_;
  bool delete_token_ = false;
  std::shared_ptr<RodSource> source_;  // null: zeros
  std::vector<CopyExtent> extents_;
  size_t at_ = 0;
  uint64_t written_ = 0;  // bytes, without a gap
};

Sense TokenWrite::plan(const scsi::WriteUsingToken& list) {
  if (!scsi::parse_rod_token(list.token, &token_)) {
    if (load_be16(&list.token[kTokenLengthAt]) != scsi::kRodTokenBytes - 8) {
      return invalid_token(0x0a);  // INVALID TOKEN LENGTH
    }
    const uint32_t type = load_be32(list.token.data());
    return invalid_token(type == scsi::kRodTypeAccessUponReference ? 0x05 : 0x01);
  }
  if (token_.rod_type == scsi::kRodTypeZero) return plan_zeros(list.ranges);
  auto source = command_.nexus->tokens().use(token_, *command_.nexus->reactor_context().now);
  if (!source) return source.sense();
  source_ = *source;
  delete_token_ = list.delete_token;
  copier_.set_check([this] { return still_valid(); });
  return plan_copy(list.offset_blocks, list.ranges);
}

Sense TokenWrite::plan_zeros(const scsi::RangeList& ranges) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    const scsi::BlockExtent to = ranges.at(i);
    const uint64_t block = unit_.block_size();
    extents_.push_back(
        {nullptr, command_.itl->shared_unit(), 0, to.lba * block, to.blocks * block});
  }
  return {};
}

// Lays the destination ranges, end to end, against the token's from `offset` on.
Sense TokenWrite::plan_copy(uint64_t offset, const scsi::RangeList& ranges) {
  const std::shared_ptr<Unit> from = source_->unit();
  if (!from) return invalid_token(0x06);
  const uint64_t from_block = from->block_size();
  const uint64_t to_block = unit_.block_size();
  const uint64_t rod = source_->blocks() * from_block;
  // Writing less than asked and saying GOOD would be noticed only by hosts that count.
  if (offset > rod / to_block || ranges.total_blocks() > rod / to_block - offset) {
    return Sense::invalid_field_in_parameter_list(kOffsetIntoRodAt);
  }
  size_t range = 0;
  uint64_t skip = offset * to_block;
  const auto& sources = source_->ranges();
  while (range < sources.size() && skip >= sources[range].blocks * from_block) {
    skip -= sources[range++].blocks * from_block;
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    const scsi::BlockExtent to = ranges.at(i);
    if (to.blocks > 0 && from.get() == &unit_ &&
        source_->overlaps(to.lba, to.lba + to.blocks - 1)) {
      // It would destroy what it still has to read, and with it the token.
      return Sense::invalid_field_in_parameter_list(static_cast<uint16_t>(kRangesAt + 16 * i));
    }
    uint64_t done = 0;
    while (done < to.blocks * to_block) {
      const uint64_t left = sources[range].blocks * from_block - skip;
      const uint64_t part = std::min(left, to.blocks * to_block - done);
      if (part % from_block != 0 || part % to_block != 0 || skip % from_block != 0) {
        return Sense::invalid_field_in_parameter_list(kOffsetIntoRodAt);
      }
      extents_.push_back({from, command_.itl->shared_unit(), sources[range].lba * from_block + skip,
                          to.lba * to_block + done, part});
      done += part;
      skip += part;
      while (range < sources.size() && skip >= sources[range].blocks * from_block) {
        skip -= sources[range++].blocks * from_block;
      }
    }
  }
  return {};
}

// With the source blocks held: what was true now is true of what is read.
Sense TokenWrite::still_valid() const {
  const Nanos now = *command_.nexus->reactor_context().now;
  if (source_->revoked()) return invalid_token(0x06);
  if (source_->expired(now)) return invalid_token(0x07);
  source_->touch(now);
  return {};
}

void TokenWrite::next() {
  while (at_ < extents_.size() && extents_[at_].bytes == 0) ++at_;
  if (at_ == extents_.size()) return end();
  copier_.run(extents_[at_], [this](const CopyFault& fault) { extent_done(fault); });
}

void TokenWrite::extent_done(const CopyFault& fault) {
  written_ += copier_.copied();
  record_->operation.blocks_transferred = written_ / unit_.block_size();
  if (fault) return fail(fault);
  ++at_;
  record_->operation.segments_processed = static_cast<uint16_t>(at_);
  next();
}

void TokenWrite::fail(const CopyFault& fault) {
  const bool aborted = fault.where == CopyFault::Where::kAborted;
  const bool own_conflict = fault.conflict && fault.where == CopyFault::Where::kDestination;
  Sense sense = fault.sense;
  if (fault.where == CopyFault::Where::kSource) {
    // THIRD PARTY DEVICE FAILURE stands for a status without sense data.
    if (fault.conflict) sense = Sense::make(SenseKey::kCopyAborted, 0x0d, 0x01);
    sense.key = SenseKey::kCopyAborted;
  }
  scsi::TokenOperation& operation = record_->operation;
  record_->running = false;
  operation.state = aborted ? scsi::TokenOperationState::kTerminated
                            : scsi::TokenOperationState::kCompletedWithErrors;
  operation.status = own_conflict ? scsi::Status::kReservationConflict
                     : aborted    ? scsi::Status::kGood
                                  : scsi::Status::kCheckCondition;
  operation.sense = sense;
  Command& command = command_;
  delete this;
  if (own_conflict) return finish_status(command, scsi::Status::kReservationConflict);
  finish_sense(command, sense);
}

void TokenWrite::end() {
  record_->running = false;
  record_->operation.state = scsi::TokenOperationState::kCompletedWithoutErrors;
  if (delete_token_) command_.nexus->tokens().remove(token_);
  Command& command = command_;
  delete this;
  finish_good(command);
}

}  // namespace

void handle_write_using_token(Unit& unit, Command& command) {
  if (command.data_out_size < command.data_out_wanted) return finish_short_data(command);
  const auto list = scsi::parse_write_using_token(command.full_cdb(), token_bounds(unit),
                                                  gather_data_out(command));
  if (!list) return finish_sense(command, list.sense());
  if (list->ranges.size() == 0) return finish_good(command);
  auto write = std::make_unique<TokenWrite>(unit, command);
  const Sense refused = write->plan(*list);
  if (refused.key != SenseKey::kNoSense) return finish_sense(command, refused);
  if (!write->reserve_memory()) return finish_status(command, scsi::Status::kBusy);
  CopyRecord* record = start_token_operation(unit, command, list->list_id, false);
  if (record) write.release()->start(record);  // ends itself with the command
}

}  // namespace sluice::lun
