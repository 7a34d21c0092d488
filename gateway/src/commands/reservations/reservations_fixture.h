// Common code of the reservation tests.
#pragma once

#include <cstdint>
#include <string>

#include "commands/reservations/pr_decision.h"

namespace sluice::lun {

inline constexpr scsi::PrType kWe = scsi::PrType::kWriteExclusive;
inline constexpr scsi::PrType kEa = scsi::PrType::kExclusiveAccess;
inline constexpr scsi::PrType kWero = scsi::PrType::kWriteExclusiveRegistrantsOnly;
inline constexpr scsi::PrType kEaro = scsi::PrType::kExclusiveAccessRegistrantsOnly;
inline constexpr scsi::PrType kWear = scsi::PrType::kWriteExclusiveAllRegistrants;
inline constexpr scsi::PrType kEaar = scsi::PrType::kExclusiveAccessAllRegistrants;
inline constexpr scsi::PrType kAllTypes[] = {kWe, kEa, kWero, kEaro, kWear, kEaar};

inline NexusId test_nexus(const std::string& name, uint16_t port = 1) {
  NexusId id;
  id.initiator_name = "iqn.2026-11.test:" + name;
  id.isid = {0x40, 0, 0, 0x37, 0, 0};
  id.target_portal_group = port;
  id.relative_target_port = port;
  return id;
}

inline PrRequest pr_request(scsi::PrOutAction action, uint64_t key, uint64_t service_action_key = 0,
                            scsi::PrType type = scsi::PrType::kNone) {
  PrRequest r;
  r.list.action = action;
  r.list.key = key;
  r.list.service_action_key = service_action_key;
  r.list.type = type;
  return r;
}

}  // namespace sluice::lun
