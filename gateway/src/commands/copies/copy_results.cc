// RECEIVE COPY RESULTS(LID1), SPC-5 §6.20: what became of an EXTENDED COPY of this nexus, and what
// copies this unit can make.
#include <array>

#include "commands/copies/copy_records.h"
#include "commands/handlers.h"
#include "scsi/cdb.h"
#include "scsi/receive_copy.h"
#include "unit/copy_limits.h"

namespace sluice::lun {
namespace {

enum ServiceAction : uint16_t {  // SPC-5 table 242
  kCopyStatus = 0x00,
  kReceiveData = 0x01,
  kOperatingParameters = 0x03,
  kFailedSegmentDetails = 0x04,
};
constexpr uint16_t kListIdAt = 2;

}  // namespace

void handle_receive_copy_results(Unit& unit, Command& command) {
  const ByteView cdb = command.full_cdb();
  const uint16_t action = command.info->service_action;
  std::array<uint8_t, 512> data;
  size_t size = 0;
  if (action == kOperatingParameters) {
    size = scsi::build_operating_parameters(copy_limits(unit.block_size()), data);
  } else {
    const CopyRecord* record = command.nexus->copies().find(unit, false, cdb[kListIdAt]);
    if (!record) return finish_sense(command, scsi::Sense::invalid_field_in_cdb(kListIdAt));
    if (action == kCopyStatus) {
      size = scsi::build_copy_status(record->copy, data);
    } else if (action == kReceiveData) {
      size = scsi::build_receive_data(data);
    } else {
      size = scsi::build_failed_segment_details(record->copy, unit.descriptor_sense(), data);
    }
  }
  finish_data(command, ByteView(data).first(size), scsi::allocation_length(*command.info, cdb));
}

}  // namespace sluice::lun
