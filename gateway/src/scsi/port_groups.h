// REPORT TARGET PORT GROUPS (SPC-5 §6.36).
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "scsi/outcome.h"

namespace sluice::scsi {

enum class AccessState : uint8_t {  // ASYMMETRIC ACCESS STATE, SPC-5 table 310
  kOptimized = 0x0,
  kNonOptimized = 0x1,
  kStandby = 0x2,
  kUnavailable = 0x3,
  kOffline = 0xe,
  kTransitioning = 0xf,
};

struct PortGroup {
  uint16_t id = 1;
  AccessState state = AccessState::kOptimized;
  bool preferred = false;   // PREF: on the Optimized group only (DESIGN R11)
  uint8_t status_code = 0;  // 0 none, 1 by STPG, 2 implicit
  std::span<const uint16_t> relative_ports{};
};

// Supported states shown: Optimized, Non-Optimized, Unavailable, Transitioning.
// `transition_seconds`: IMPLICIT TRANSITION TIME of the extended header (PARAMETER DATA FORMAT
// 001b); formats other than 000b and 001b are 05/24/00.
Outcome<size_t> build_report_port_groups(ByteView cdb, std::span<const PortGroup> groups,
                                         uint8_t transition_seconds, MutableBytes out);

}  // namespace sluice::scsi
