// EXTENDED COPY(LID1), SPC-5 §6.4: block to block segments between units of this target, one after
// the other.
#include <memory>

#include "base/limits.h"
#include "commands/copies/copier.h"
#include "commands/copies/copy_records.h"
#include "commands/handlers.h"
#include "scsi/xcopy_list.h"
#include "unit/copy_limits.h"

namespace sluice::lun {
namespace {

using scsi::Sense;
using scsi::SenseKey;

constexpr size_t kHeaderBytes = 16;
constexpr size_t kBlockCountAt = 10;  // in a segment descriptor

scsi::CopyCause cause_of(const CopyFault& fault) {
  const bool source = fault.where == CopyFault::Where::kSource;
  return {
      .party = source ? scsi::CopyParty::kSource : scsi::CopyParty::kDestination,
      .status = fault.conflict ? scsi::Status::kReservationConflict : scsi::Status::kCheckCondition,
      .key = fault.conflict ? SenseKey::kNoSense : fault.sense.key,
      .asc = fault.sense.asc,
      .ascq = fault.sense.ascq,
      .has_information = fault.sense.has_information,
      .information = fault.sense.information};
}

// COPY ABORTED for a reason that is the copy manager's own.
Sense refused(uint16_t segment, uint8_t asc, uint8_t ascq) {
  Sense sense = scsi::copy_aborted(segment, {});
  sense.asc = asc;
  sense.ascq = ascq;
  return sense;
}

class ExtendedCopy {
 public:
  ExtendedCopy(Command& command, const scsi::XcopyList& list)
      : command_(command), list_(list), copier_(command) {}

  // Checks what can be checked before anything is copied. false: answered.
  bool admit(Unit& unit);
  void start() { next_segment(); }

 private:
  struct Party {
    std::shared_ptr<Unit> unit;
    scsi::CscdDescriptor descriptor;
  };
  bool resolve(const scsi::CopySegment& segment, bool destination, Party* party,
               Sense* sense) const;
  bool plan(const scsi::CopySegment& segment, CopyExtent* extent, Sense* sense) const;
  bool within_limit(Sense* sense) const;
  void next_segment();
  void segment_done(const CopyFault& fault);
  // `status` and `cause` are what the failing unit said, for FAILED SEGMENT DETAILS.
  void end_with(const Sense& sense, scsi::Status status, const Sense& cause = {});
  void end();

  uint16_t number() const { return static_cast<uint16_t>(at_); }

  Command& command_;
  const scsi::XcopyList list_;
  Copier copier_;
  CopyRecord* record_ = nullptr;
  size_t at_ = 0;         // segment
  uint64_t copied_ = 0;   // bytes, of segments done
  uint64_t planned_ = 0;  // bytes, of the present segment
  uint64_t destination_block_ = 512;
};

// A CSCD as the segment at_ names it. false: COPY ABORTED, as *sense says.
bool ExtendedCopy::resolve(const scsi::CopySegment& segment, bool destination, Party* party,
                           Sense* sense) const {
  const uint16_t index = destination ? segment.destination : segment.source;
  *sense = scsi::unreachable_cscd(number(), destination);
  if (index >= list_.cscd_count()) return false;
  party->descriptor = list_.cscd(index);
  party->unit = command_.nexus->unit_by_designator(party->descriptor.designator);
  if (!party->unit) return false;
  const auto refuse = [&](uint8_t asc, uint8_t ascq) {
    *sense = refused(number(), asc, ascq);
    return false;
  };
  if (party->descriptor.device_type != 0) return refuse(0x0d, 0x03);  // INCORRECT ... DEVICE TYPE
  const uint32_t believed = party->descriptor.block_length;
  if (believed != 0 && believed != party->unit->block_size()) return refuse(0x26, 0x00);
  return true;
}

// SPC-5 §6.4.6.5 and table of PAD and CAT for block to block copies.
bool ExtendedCopy::plan(const scsi::CopySegment& segment, CopyExtent* extent, Sense* sense) const {
  Party source;
  Party destination;
  if (!resolve(segment, false, &source, sense)) return false;
  if (!resolve(segment, true, &destination, sense)) return false;
  const uint64_t from = source.unit->block_size();
  const uint64_t to = destination.unit->block_size();
  extent->source = source.unit;
  extent->destination = destination.unit;
  extent->source_offset = segment.source_lba * from;
  extent->destination_offset = segment.destination_lba * to;
  extent->bytes = segment.blocks * (segment.destination_count ? to : from);
  const auto refuse = [&](uint8_t asc, uint8_t ascq) {
    *sense = refused(number(), asc, ascq);
    return false;
  };
  const bool exact = extent->bytes % from == 0 && extent->bytes % to == 0;
  // With CAT the rest would have to wait for the next segment: not done here.
  if (!exact && segment.cat) return refuse(0x26, 0x00);
  const bool pad = extent->bytes % from != 0 ? source.descriptor.pad : destination.descriptor.pad;
  if (!exact && !pad) return refuse(0x26, 0x0a);  // UNEXPECTED INEXACT SEGMENT
  Sense outside;
  if (!range_fits(*source.unit, segment.source_lba, (extent->bytes + from - 1) / from, &outside) ||
      !range_fits(*destination.unit, segment.destination_lba, (extent->bytes + to - 1) / to,
                  &outside)) {
    // The units were never asked, so there is no sense of theirs to pass on.
    return refuse(0x00, 0x00);
  }
  return true;
}

bool ExtendedCopy::within_limit(Sense* sense) const {
  // Block sizes aren't known for units that aren't there; those end the copy when it gets there.
  uint64_t total = 0;
  for (size_t i = 0; i < list_.segment_count(); ++i) {
    const scsi::CopySegment segment = list_.segment(i);
    Party party;
    Sense ignored;
    if (!resolve(segment, segment.destination_count, &party, &ignored)) continue;
    total += uint64_t{segment.blocks} * party.unit->block_size();
    if (total <= limits::kMaxCopyBytes) continue;
    *sense = Sense::invalid_field_in_parameter_list(static_cast<uint16_t>(
        kHeaderBytes + list_.cscds.size() + i * scsi::XcopyList::kSegmentBytes + kBlockCountAt));
    return false;
  }
  return true;
}

bool ExtendedCopy::admit(Unit& unit) {
  Sense sense;
  if (!within_limit(&sense)) {
    finish_sense(command_, sense);
    return false;
  }
  bool in_use = false;
  if (list_.retains_results()) {
    record_ = command_.nexus->copies().start(unit, false, list_.list_id, &in_use);
  }
  if (in_use) {  // OPERATION IN PROGRESS
    finish_sense(command_, Sense::make(SenseKey::kIllegalRequest, 0x00, 0x16));
    return false;
  }
  if ((list_.retains_results() && !record_) || !copier_.reserve_memory()) {
    if (record_) command_.nexus->copies().forget(record_);
    finish_status(command_, scsi::Status::kBusy);
    return false;
  }
  return true;
}

void ExtendedCopy::next_segment() {
  for (; at_ < list_.segment_count(); ++at_) {
    const scsi::CopySegment segment = list_.segment(at_);
    CopyExtent extent;
    Sense sense;
    if (!plan(segment, &extent, &sense)) {
      return end_with(sense, scsi::Status::kCheckCondition, sense);
    }
    if (extent.bytes == 0) continue;
    planned_ = extent.bytes;
    destination_block_ = extent.destination->block_size();
    return copier_.run(extent, [this](const CopyFault& fault) { segment_done(fault); });
  }
  end();
}

void ExtendedCopy::segment_done(const CopyFault& fault) {
  copied_ += copier_.copied();
  if (record_) record_->copy.bytes_transferred = copied_;
  if (fault.where == CopyFault::Where::kAborted) {
    return end_with({}, scsi::Status::kTaskAborted);
  }
  // RESERVATION CONFLICT has no sense data: THIRD PARTY DEVICE FAILURE
  if (fault.conflict) {
    return end_with(scsi::copy_aborted(number(), cause_of(fault)),
                    scsi::Status::kReservationConflict);
  }
  if (fault) {
    const uint64_t residual = copier_.copied() > 0 ? planned_ - copier_.copied() : 0;
    return end_with(scsi::copy_aborted(number(), cause_of(fault), residual / destination_block_),
                    scsi::Status::kCheckCondition, fault.sense);
  }
  ++at_;
  if (record_) record_->copy.segments_processed = number();
  next_segment();
}

void ExtendedCopy::end_with(const Sense& sense, scsi::Status status, const Sense& cause) {
  if (record_) {
    record_->running = false;
    record_->copy.state = scsi::CopyState::kCompletedWithErrors;
    record_->copy.status = status;
    record_->copy.sense = cause;
  }
  Command& command = command_;
  delete this;
  finish_sense(command, sense);
}

void ExtendedCopy::end() {
  if (record_) {
    record_->running = false;
    record_->copy.state = scsi::CopyState::kCompletedWithoutErrors;
    record_->copy.segments_processed = number();
  }
  Command& command = command_;
  delete this;
  finish_good(command);
}

}  // namespace

void handle_extended_copy(Unit& unit, Command& command) {
  if (command.data_out_size < command.data_out_wanted) return finish_short_data(command);
  const auto list = scsi::parse_xcopy(command.full_cdb(), copy_limits(unit.block_size()),
                                      gather_data_out(command));
  if (!list) return finish_sense(command, list.sense());
  if (list->segment_count() == 0) return finish_good(command);
  auto copy = std::make_unique<ExtendedCopy>(command, *list);
  if (!copy->admit(unit)) return;
  copy.release()->start();  // ends itself with the command
}

}  // namespace sluice::lun
