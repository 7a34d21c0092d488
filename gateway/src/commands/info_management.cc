// MAINTENANCE IN and OUT: target port groups, supported commands and task management functions.
#include <algorithm>
#include <map>
#include <vector>

#include "commands/handlers.h"
#include "scsi/port_groups.h"
#include "scsi/report_opcodes.h"

namespace sluice::lun {
namespace {

uint32_t room(const Command& command) {
  return scsi::allocation_length(*command.info, command.full_cdb());
}

// Of group `id`, as seen by gateway `here`.
scsi::AccessState state_of(const Role& role, uint16_t id, uint16_t here) {
  switch (role.standing) {
    case Standing::kTransitioning:
      return scsi::AccessState::kTransitioning;
    case Standing::kUnavailable:
      return scsi::AccessState::kUnavailable;
    case Standing::kOwner:  // without a control plane there is no owner number
      return id == (role.owner != 0 ? role.owner : here) ? scsi::AccessState::kOptimized
                                                         : scsi::AccessState::kNonOptimized;
    case Standing::kCutOff:
      if (id == here) return scsi::AccessState::kUnavailable;
      [[fallthrough]];
    default:
      return id == role.owner ? scsi::AccessState::kOptimized : scsi::AccessState::kNonOptimized;
  }
}

}  // namespace

// The states depend on the role only, so they are the same through every gateway that knows the
// same epoch (DESIGN R11). A gateway that is cut off differs in the state of its own group.
void handle_report_target_port_groups(Unit& unit, Command& command) {
  const Role role = unit.role();
  const uint16_t here = command.nexus->port().target_port_group;
  std::map<uint16_t, std::vector<uint16_t>> ports;  // by group
  for (const TargetPort& port : command.nexus->target_ports()) {
    ports[port.group].push_back(port.relative_port);
  }
  std::vector<scsi::PortGroup> groups;
  size_t bytes = 8;
  for (auto& [id, relative] : ports) {
    std::sort(relative.begin(), relative.end());
    scsi::PortGroup group;
    group.id = id;
    group.state = state_of(role, id, here);
    group.preferred = group.state == scsi::AccessState::kOptimized;
    group.status_code = role.epoch != 0 ? 2 : 0;  // altered by implicit behaviour
    group.relative_ports = relative;
    groups.push_back(group);
    bytes += 8 + 4 * relative.size();
  }
  std::vector<uint8_t> out(bytes);
  const auto size = scsi::build_report_port_groups(command.full_cdb(), groups, 0, out);
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
