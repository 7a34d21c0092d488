// INQUIRY, REPORT LUNS, TEST UNIT READY, REQUEST SENSE, READ CAPACITY.
#include <vector>

#include "commands/handlers.h"
#include "scsi/capacity.h"
#include "scsi/inquiry.h"
#include "scsi/report_luns.h"
#include "scsi/request_sense.h"
#include "unit/unit_sense.h"

namespace sluice::lun {
namespace {

constexpr size_t kMaxInquiry = 2048;  // bytes; no page is longer

uint32_t room(const Command& command) {
  return scsi::allocation_length(*command.info, command.full_cdb());
}

}  // namespace

// All it asks was checked at the gate.
void handle_test_unit_ready(Unit& /*unit*/, Command& command) { finish_good(command); }

void handle_inquiry(Unit& unit, Command& command) {
  std::array<uint8_t, kMaxInquiry> out;
  const auto size =
      scsi::build_inquiry(command.full_cdb(), unit.inquiry(command.nexus->port()), out);
  if (!size) return finish_sense(command, size.sense());
  finish_data(command, ByteView(out).first(*size), room(command));
}

void answer_report_luns(Command& command) {
  command.nexus->inventory_reported();
  const std::vector<uint64_t> numbers = command.nexus->lun_numbers();
  std::vector<uint8_t> out(8 + 8 * (numbers.size() + 1));
  const auto size = scsi::build_report_luns(command.full_cdb(), numbers, out);
  if (!size) return finish_sense(command, size.sense());
  finish_data(command, ByteView(out).first(*size), room(command));
}

void handle_report_luns(Unit& /*unit*/, Command& command) { answer_report_luns(command); }

// SPC-5 §6.39: a pending unit attention comes first and is thereby cleared.
void handle_request_sense(Unit& unit, Command& command) {
  scsi::Sense sense;
  UnitAttention ua;
  if (unit.attached().pop(*command.itl, &ua)) {
    sense = scsi::Sense::make(scsi::SenseKey::kUnitAttention, ua.asc, ua.ascq);
  } else if (const Standing standing = unit.role().standing; standing >= Standing::kTransitioning) {
    sense = inaccessible(standing);
  } else if (unit.gate() & Unit::kNotReady) {
    sense = not_ready_sense(unit);
  }
  std::array<uint8_t, scsi::kMaxSenseBytes> out;
  const size_t size = scsi::build_request_sense(command.full_cdb(), sense, out);
  finish_data(command, ByteView(out).first(size), room(command));
}

void handle_read_capacity(Unit& unit, Command& command) {
  std::array<uint8_t, 32> out;
  const bool ten = command.info->service_action == scsi::kNoServiceAction;
  const size_t size = ten ? scsi::build_read_capacity_10(unit.geometry(), out)
                          : scsi::build_read_capacity_16(unit.geometry(), unit.provisioning(), out);
  // READ CAPACITY(10) has no ALLOCATION LENGTH.
  finish_data(command, ByteView(out).first(size), ten ? 8 : room(command));
}

}  // namespace sluice::lun
