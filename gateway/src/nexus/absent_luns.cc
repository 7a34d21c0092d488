#include "nexus/absent_luns.h"

#include <array>

#include "commands/handlers.h"
#include "scsi/inquiry.h"
#include "scsi/report_luns.h"
#include "scsi/request_sense.h"

namespace sluice::lun {
namespace {

using scsi::Operation;
using scsi::Sense;

constexpr size_t kMaxAnswer = 1024;  // bytes; no page of an absent or well-known unit is longer

Sense lun_not_supported() { return Sense::make(scsi::SenseKey::kIllegalRequest, 0x25, 0x00); }

void answer_inquiry(Command& command, bool well_known) {
  scsi::InquiryUnit unit;
  unit.peripheral = well_known ? scsi::Peripheral::kWellKnownUnit : scsi::Peripheral::kAbsent;
  unit.port = command.nexus->port();
  std::array<uint8_t, kMaxAnswer> out;
  const auto size = scsi::build_inquiry(command.full_cdb(), unit, out);
  if (!size) return finish_sense(command, size.sense());
  finish_data(command, ByteView(out).first(*size),
              scsi::allocation_length(*command.info, command.full_cdb()));
}

void answer_request_sense(Command& command, bool well_known) {
  std::array<uint8_t, scsi::kMaxSenseBytes> out;
  const Sense sense = well_known ? Sense() : lun_not_supported();
  const size_t size = scsi::build_request_sense(command.full_cdb(), sense, out);
  finish_data(command, ByteView(out).first(size),
              scsi::allocation_length(*command.info, command.full_cdb()));
}

}  // namespace

void answer_without_unit(Command& command) {
  const bool well_known = command.lun_field == scsi::kReportLunsWellKnownLun;
  Sense sense;
  command.info = scsi::find_command(command.full_cdb(), &sense);
  if (!well_known && (!command.info || !(command.info->flags & scsi::kAnyLun))) {
    return finish_sense(command, lun_not_supported());
  }
  if (!command.info) return finish_sense(command, sense);
  if (well_known && !(command.info->flags & scsi::kWellKnownLun)) {
    // INVALID COMMAND OPERATION CODE: the well-known unit exists but does not support the command.
    return finish_sense(command, Sense::make(scsi::SenseKey::kIllegalRequest, 0x20, 0x00));
  }
  switch (command.info->operation) {
    case Operation::kInquiry:
      return answer_inquiry(command, well_known);
    case Operation::kReportLuns:
      return answer_report_luns(command);
    case Operation::kRequestSense:
      return answer_request_sense(command, well_known);
    case Operation::kTestUnitReady:
      return finish_good(command);
    default:
      return finish_sense(command, well_known
                                       ? Sense::make(scsi::SenseKey::kIllegalRequest, 0x20, 0x00)
                                       : lun_not_supported());
  }
}

}  // namespace sluice::lun
