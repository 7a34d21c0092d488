// The role of this gateway for a volume (DESIGN R1, R7, R11).
#pragma once

#include <cstdint>

namespace sluice::lun {

enum class Standing : uint8_t {
  // Executes commands; its target port group is Active/Optimized. The standing of every unit in a
  // gateway without a control plane.
  kOwner,
  // Forwards commands to the owner; its group is Active/Non-Optimized.
  kForwarder,
  // No owner serves it yet, but one may soon. Commands are held for limits::kHoldCommands, then
  // answered 02/04/0A (LOGICAL UNIT NOT ACCESSIBLE, ASYMMETRIC ACCESS STATE TRANSITION).
  kTransitioning,
  // 02/04/0C (... TARGET PORT IN UNAVAILABLE STATE).
  kUnavailable,
  // As kUnavailable for this gateway's own group. The states of the other groups are those that a
  // forwarder reports: this gateway reaches neither the owner nor the control plane, others may.
  kCutOff,
};

constexpr bool is_unavailable(Standing standing) {
  return standing == Standing::kUnavailable || standing == Standing::kCutOff;
}

struct Role {
  Standing standing = Standing::kOwner;
  uint64_t epoch = 0;  // fencing number of the volume; 0: no control plane
  uint16_t owner = 0;  // number of the gateway that owns it; 0: none
  bool operator==(const Role&) const = default;
};

}  // namespace sluice::lun
