// A target port anywhere in the path set (DESIGN §1).
#pragma once

#include <cstdint>

namespace sluice::lun {

struct TargetPort {
  uint16_t group = 1;  // number of the gateway
  uint16_t tpgt = 1;
  uint16_t relative_port = 1;
  bool operator==(const TargetPort&) const = default;
};

}  // namespace sluice::lun
