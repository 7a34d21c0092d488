// The name of an I_T nexus.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace sluice::lun {

// Names the two ports; the key of persistent reservations (SPC-5 §5.14.1).
struct NexusId {
  std::string initiator_name;         // iSCSI name, lower case
  std::array<uint8_t, 6> isid{};      // RFC 7143 §11.12.5
  uint16_t target_portal_group = 1;   // TPGT
  uint16_t relative_target_port = 1;  // cluster-wide unique id of IQN + TPGT
  bool operator==(const NexusId&) const = default;
};

}  // namespace sluice::lun
