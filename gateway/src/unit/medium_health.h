// Health of a unit's medium as the gateway's check found it, about once a second
// (Unit::poll_health).
#pragma once

#include <string>

namespace sluice::lun {

struct MediumHealth {
  bool ready = true;    // false: commands for the medium end with NOT READY
  std::string problem;  // cause and remedy; empty: no problem
  bool operator==(const MediumHealth&) const = default;
};

}  // namespace sluice::lun
