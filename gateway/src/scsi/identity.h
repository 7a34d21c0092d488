// Who a logical unit and a target port are: the values behind INQUIRY and every designator
// (DESIGN §7, R13). Plain views; the owner of the text outlives the call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace sluice::scsi {

struct Identity {
  std::array<uint8_t, 16> uuid{};
  std::string_view serial{};            // VPD 80; printable ASCII
  std::string_view vendor = "SLUICE";   // 8 characters at most
  std::string_view product = "VOLUME";  // 16
  std::string_view revision = "0001";   // 4
  uint32_t oui = 0;                     // 24 bits; 0: NAA 3 (locally assigned) else NAA 6
};

// The target port a command came in by (DESIGN §1).
struct PortIdentity {
  std::string_view target_name{};     // IQN
  uint16_t portal_group = 1;          // TPGT
  uint16_t relative_target_port = 1;  // cluster-wide
  uint16_t target_port_group = 1;     // ALUA
};

// An NAA designator (SPC-5 §7.7.6.6): 8 bytes (NAA 3) or 16 bytes (NAA 6).
struct Naa {
  std::array<uint8_t, 16> value{};
  size_t size = 0;
  ByteView bytes() const { return ByteView(value).first(size); }
};

// NAA 3: the UUID's first 64 bits without the version nibble, which is the same in every UUID of
// a kind, leaving 60. NAA 6: OUI, the first 36 bits and the last 64 bits of the UUID.
Naa naa_of(const Identity& identity);

// Whether a designation descriptor (SPC-5 §7.7.6.1, 4-byte header and designator) names this
// logical unit: its NAA, its UUID, or its T10 vendor id designator.
bool designates(ByteView descriptor, const Identity& identity);

}  // namespace sluice::scsi
