// MAINTENANCE IN and OUT: target port groups, supported commands and task management functions.
#include "lun/exports.h"
#include "lun/handlers.h"
#include "scsi/port_groups.h"
#include "scsi/report_opcodes.h"

namespace sluice::lun {
namespace {

uint32_t room(const Command& command) {
  return scsi::allocation_length(*command.info, command.full_cdb());
}

}  // namespace

// One group, whose gateway executes all commands itself: Active/Optimized (DESIGN R11).
void handle_report_target_port_groups(Unit& /*unit*/, Command& command) {
  const Target& target = command.nexus->target();
  std::vector<uint16_t> ports = target.relative_ports();
  if (ports.empty()) ports.push_back(command.nexus->id().relative_target_port);
  scsi::PortGroup group;
  group.id = target.target_port_group();
  group.state = scsi::AccessState::kOptimized;
  group.preferred = true;
  group.relative_ports = ports;
  std::vector<uint8_t> out(16 + 4 * ports.size());
  const auto size = scsi::build_report_port_groups(command.full_cdb(), {&group, 1}, 0, out);
  if (!size) return finish_sense(command, size.sense());
  finish_data(command, ByteView(out).first(*size), room(command));
}

// Implicit ALUA only: no service action of this kind (DESIGN R11).
void handle_set_target_port_groups(Unit& /*unit*/, Command& command) {
  finish_sense(command, scsi::Sense::invalid_field_in_cdb(1, 4));
}

void handle_report_supported_operation_codes(Unit& unit, Command& command) {
  std::array<uint8_t, scsi::kMaxReportOpcodes> out;
  const auto size = scsi::build_report_opcodes(command.full_cdb(), unit.support(), out);
  if (!size) return finish_sense(command, size.sense());
  finish_data(command, ByteView(out).first(*size), room(command));
}

void handle_report_supported_task_management_functions(Unit& /*unit*/, Command& command) {
  std::array<uint8_t, 16> out;
  const size_t size = scsi::build_report_task_management(command.full_cdb(), {}, out);
  finish_data(command, ByteView(out).first(size), room(command));
}

}  // namespace sluice::lun
